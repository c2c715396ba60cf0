from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNPROMISED: _ClassVar[Outcome]
    KEPT: _ClassVar[Outcome]
    DECLINED: _ClassVar[Outcome]
    LATE: _ClassVar[Outcome]
UNPROMISED: Outcome
KEPT: Outcome
DECLINED: Outcome
LATE: Outcome

class FromEnforcer(_message.Message):
    __slots__ = ("hello", "machine", "report", "heartbeat", "traffic")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    machine: Machine
    report: Report
    heartbeat: Heartbeat
    traffic: Traffic
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., machine: _Optional[_Union[Machine, _Mapping]] = ..., report: _Optional[_Union[Report, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., traffic: _Optional[_Union[Traffic, _Mapping]] = ...) -> None: ...

class ToEnforcer(_message.Message):
    __slots__ = ("welcome", "ack", "expect", "gone", "namespaces")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    EXPECT_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    ack: Ack
    expect: Expect
    gone: Gone
    namespaces: Namespaces
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., expect: _Optional[_Union[Expect, _Mapping]] = ..., gone: _Optional[_Union[Gone, _Mapping]] = ..., namespaces: _Optional[_Union[Namespaces, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("node", "version", "session", "acked_generation", "acked_fingerprint", "format")
    NODE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ACKED_GENERATION_FIELD_NUMBER: _ClassVar[int]
    ACKED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    node: str
    version: str
    session: str
    acked_generation: int
    acked_fingerprint: int
    format: int
    def __init__(self, node: _Optional[str] = ..., version: _Optional[str] = ..., session: _Optional[str] = ..., acked_generation: _Optional[int] = ..., acked_fingerprint: _Optional[int] = ..., format: _Optional[int] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("resume", "format", "version")
    RESUME_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    resume: bool
    format: int
    version: str
    def __init__(self, resume: _Optional[bool] = ..., format: _Optional[int] = ..., version: _Optional[str] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("generation",)
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    def __init__(self, generation: _Optional[int] = ...) -> None: ...

class Machine(_message.Message):
    __slots__ = ("name", "numa_nodes", "cores", "caches", "sockets", "reserved_cpus", "rules", "clusters")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    CACHES_FIELD_NUMBER: _ClassVar[int]
    SOCKETS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_CPUS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    numa_nodes: _containers.RepeatedCompositeFieldContainer[NumaNode]
    cores: _containers.RepeatedScalarFieldContainer[str]
    caches: _containers.RepeatedScalarFieldContainer[str]
    sockets: _containers.RepeatedScalarFieldContainer[str]
    reserved_cpus: str
    rules: Rules
    clusters: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., numa_nodes: _Optional[_Iterable[_Union[NumaNode, _Mapping]]] = ..., cores: _Optional[_Iterable[str]] = ..., caches: _Optional[_Iterable[str]] = ..., sockets: _Optional[_Iterable[str]] = ..., reserved_cpus: _Optional[str] = ..., rules: _Optional[_Union[Rules, _Mapping]] = ..., clusters: _Optional[_Iterable[str]] = ...) -> None: ...

class Rules(_message.Message):
    __slots__ = ("prefer_closest_numa_nodes", "max_allowable_numa_nodes", "everyone", "within_caches", "distribute_cpus_across_numa", "max_exclusive_cpus_per_namespace", "distribute_cpus_across_cores", "align_by_socket")
    PREFER_CLOSEST_NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_ALLOWABLE_NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
    EVERYONE_FIELD_NUMBER: _ClassVar[int]
    WITHIN_CACHES_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTE_CPUS_ACROSS_NUMA_FIELD_NUMBER: _ClassVar[int]
    MAX_EXCLUSIVE_CPUS_PER_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTE_CPUS_ACROSS_CORES_FIELD_NUMBER: _ClassVar[int]
    ALIGN_BY_SOCKET_FIELD_NUMBER: _ClassVar[int]
    prefer_closest_numa_nodes: bool
    max_allowable_numa_nodes: int
    everyone: bool
    within_caches: bool
    distribute_cpus_across_numa: bool
    max_exclusive_cpus_per_namespace: int
    distribute_cpus_across_cores: bool
    align_by_socket: bool
    def __init__(self, prefer_closest_numa_nodes: _Optional[bool] = ..., max_allowable_numa_nodes: _Optional[int] = ..., everyone: _Optional[bool] = ..., within_caches: _Optional[bool] = ..., distribute_cpus_across_numa: _Optional[bool] = ..., max_exclusive_cpus_per_namespace: _Optional[int] = ..., distribute_cpus_across_cores: _Optional[bool] = ..., align_by_socket: _Optional[bool] = ...) -> None: ...

class NumaNode(_message.Message):
    __slots__ = ("id", "cpus", "memory", "distances", "hugepages", "isolated_cpus", "withheld")
    class HugepagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    HUGEPAGES_FIELD_NUMBER: _ClassVar[int]
    ISOLATED_CPUS_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    id: int
    cpus: str
    memory: int
    distances: _containers.RepeatedScalarFieldContainer[int]
    hugepages: _containers.ScalarMap[int, int]
    isolated_cpus: str
    withheld: bool
    def __init__(self, id: _Optional[int] = ..., cpus: _Optional[str] = ..., memory: _Optional[int] = ..., distances: _Optional[_Iterable[int]] = ..., hugepages: _Optional[_Mapping[int, int]] = ..., isolated_cpus: _Optional[str] = ..., withheld: _Optional[bool] = ...) -> None: ...

class Demand(_message.Message):
    __slots__ = ("cpu_milli", "memory", "memory_limit", "hugepages", "estimated", "used_milli")
    class HugepagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    HUGEPAGES_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    USED_MILLI_FIELD_NUMBER: _ClassVar[int]
    cpu_milli: int
    memory: int
    memory_limit: int
    hugepages: _containers.ScalarMap[int, int]
    estimated: _containers.RepeatedScalarFieldContainer[str]
    used_milli: int
    def __init__(self, cpu_milli: _Optional[int] = ..., memory: _Optional[int] = ..., memory_limit: _Optional[int] = ..., hugepages: _Optional[_Mapping[int, int]] = ..., estimated: _Optional[_Iterable[str]] = ..., used_milli: _Optional[int] = ...) -> None: ...

class Reservation(_message.Message):
    __slots__ = ("key", "pod", "group", "numa_nodes", "demand", "parts", "pool", "alone", "size", "workload", "cache_domain", "let_out")
    KEY_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    CACHE_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    LET_OUT_FIELD_NUMBER: _ClassVar[int]
    key: str
    pod: str
    group: str
    numa_nodes: str
    demand: Demand
    parts: _containers.RepeatedCompositeFieldContainer[Part]
    pool: str
    alone: bool
    size: int
    workload: str
    cache_domain: str
    let_out: str
    def __init__(self, key: _Optional[str] = ..., pod: _Optional[str] = ..., group: _Optional[str] = ..., numa_nodes: _Optional[str] = ..., demand: _Optional[_Union[Demand, _Mapping]] = ..., parts: _Optional[_Iterable[_Union[Part, _Mapping]]] = ..., pool: _Optional[str] = ..., alone: _Optional[bool] = ..., size: _Optional[int] = ..., workload: _Optional[str] = ..., cache_domain: _Optional[str] = ..., let_out: _Optional[str] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("numa_node", "cpu_milli", "memory", "hugepages")
    class HugepagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
    CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    HUGEPAGES_FIELD_NUMBER: _ClassVar[int]
    numa_node: int
    cpu_milli: int
    memory: int
    hugepages: _containers.ScalarMap[int, int]
    def __init__(self, numa_node: _Optional[int] = ..., cpu_milli: _Optional[int] = ..., memory: _Optional[int] = ..., hugepages: _Optional[_Mapping[int, int]] = ...) -> None: ...

class Allocation(_message.Message):
    __slots__ = ("container", "name", "pod", "reservation", "cpus", "mems", "exclusive", "externally_managed", "open", "stable", "rounded_up_milli")
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMS_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    EXTERNALLY_MANAGED_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    STABLE_FIELD_NUMBER: _ClassVar[int]
    ROUNDED_UP_MILLI_FIELD_NUMBER: _ClassVar[int]
    container: str
    name: str
    pod: str
    reservation: str
    cpus: str
    mems: str
    exclusive: str
    externally_managed: bool
    open: bool
    stable: bool
    rounded_up_milli: int
    def __init__(self, container: _Optional[str] = ..., name: _Optional[str] = ..., pod: _Optional[str] = ..., reservation: _Optional[str] = ..., cpus: _Optional[str] = ..., mems: _Optional[str] = ..., exclusive: _Optional[str] = ..., externally_managed: _Optional[bool] = ..., open: _Optional[bool] = ..., stable: _Optional[bool] = ..., rounded_up_milli: _Optional[int] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("generation", "base_generation", "fingerprint", "reservations", "gone_reservations", "allocations", "gone_allocations", "free_memory", "decisions", "registered", "used_cpu", "stalled", "free_hugepages", "free_devices", "hot", "yielded", "earlier")
    class FreeMemoryEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    class UsedCpuEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    class StalledEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: float
        def __init__(self, key: _Optional[int] = ..., value: _Optional[float] = ...) -> None: ...
    class HotEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bool
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bool] = ...) -> None: ...
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    BASE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    GONE_RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATIONS_FIELD_NUMBER: _ClassVar[int]
    GONE_ALLOCATIONS_FIELD_NUMBER: _ClassVar[int]
    FREE_MEMORY_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    USED_CPU_FIELD_NUMBER: _ClassVar[int]
    STALLED_FIELD_NUMBER: _ClassVar[int]
    FREE_HUGEPAGES_FIELD_NUMBER: _ClassVar[int]
    FREE_DEVICES_FIELD_NUMBER: _ClassVar[int]
    HOT_FIELD_NUMBER: _ClassVar[int]
    YIELDED_FIELD_NUMBER: _ClassVar[int]
    EARLIER_FIELD_NUMBER: _ClassVar[int]
    generation: int
    base_generation: int
    fingerprint: int
    reservations: _containers.RepeatedCompositeFieldContainer[Reservation]
    gone_reservations: _containers.RepeatedScalarFieldContainer[str]
    allocations: _containers.RepeatedCompositeFieldContainer[Allocation]
    gone_allocations: _containers.RepeatedScalarFieldContainer[str]
    free_memory: _containers.ScalarMap[int, int]
    decisions: _containers.RepeatedCompositeFieldContainer[DecisionRecord]
    registered: bool
    used_cpu: _containers.ScalarMap[int, int]
    stalled: _containers.ScalarMap[int, float]
    free_hugepages: _containers.RepeatedCompositeFieldContainer[FreePages]
    free_devices: _containers.RepeatedCompositeFieldContainer[FreeDevices]
    hot: _containers.ScalarMap[str, bool]
    yielded: Yielded
    earlier: _containers.RepeatedCompositeFieldContainer[DecisionRecord]
    def __init__(self, generation: _Optional[int] = ..., base_generation: _Optional[int] = ..., fingerprint: _Optional[int] = ..., reservations: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ..., gone_reservations: _Optional[_Iterable[str]] = ..., allocations: _Optional[_Iterable[_Union[Allocation, _Mapping]]] = ..., gone_allocations: _Optional[_Iterable[str]] = ..., free_memory: _Optional[_Mapping[int, int]] = ..., decisions: _Optional[_Iterable[_Union[DecisionRecord, _Mapping]]] = ..., registered: _Optional[bool] = ..., used_cpu: _Optional[_Mapping[int, int]] = ..., stalled: _Optional[_Mapping[int, float]] = ..., free_hugepages: _Optional[_Iterable[_Union[FreePages, _Mapping]]] = ..., free_devices: _Optional[_Iterable[_Union[FreeDevices, _Mapping]]] = ..., hot: _Optional[_Mapping[str, bool]] = ..., yielded: _Optional[_Union[Yielded, _Mapping]] = ..., earlier: _Optional[_Iterable[_Union[DecisionRecord, _Mapping]]] = ...) -> None: ...

class Yielded(_message.Message):
    __slots__ = ("containers", "members", "conflicts")
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    containers: int
    members: int
    conflicts: int
    def __init__(self, containers: _Optional[int] = ..., members: _Optional[int] = ..., conflicts: _Optional[int] = ...) -> None: ...

class FreeDevices(_message.Message):
    __slots__ = ("resource", "numa_nodes", "free")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    resource: str
    numa_nodes: str
    free: int
    def __init__(self, resource: _Optional[str] = ..., numa_nodes: _Optional[str] = ..., free: _Optional[int] = ...) -> None: ...

class FreePages(_message.Message):
    __slots__ = ("numa_node", "size", "free")
    NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    numa_node: int
    size: int
    free: int
    def __init__(self, numa_node: _Optional[int] = ..., size: _Optional[int] = ..., free: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("generation", "health")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    generation: int
    health: Health
    def __init__(self, generation: _Optional[int] = ..., health: _Optional[_Union[Health, _Mapping]] = ...) -> None: ...

class Health(_message.Message):
    __slots__ = ("collector", "runtime", "threads", "devices", "devices_left_out", "cpuset_owners")
    COLLECTOR_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    CPUSET_OWNERS_FIELD_NUMBER: _ClassVar[int]
    collector: str
    runtime: str
    threads: _containers.RepeatedCompositeFieldContainer[ThreadHealth]
    devices: _containers.RepeatedCompositeFieldContainer[Device]
    devices_left_out: int
    cpuset_owners: str
    def __init__(self, collector: _Optional[str] = ..., runtime: _Optional[str] = ..., threads: _Optional[_Iterable[_Union[ThreadHealth, _Mapping]]] = ..., devices: _Optional[_Iterable[_Union[Device, _Mapping]]] = ..., devices_left_out: _Optional[int] = ..., cpuset_owners: _Optional[str] = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ("address", "kind", "driver", "names", "numa_node")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
    address: str
    kind: str
    driver: str
    names: _containers.RepeatedScalarFieldContainer[str]
    numa_node: int
    def __init__(self, address: _Optional[str] = ..., kind: _Optional[str] = ..., driver: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ..., numa_node: _Optional[int] = ...) -> None: ...

class ThreadHealth(_message.Message):
    __slots__ = ("name", "since_success_s", "stale", "failures", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SINCE_SUCCESS_S_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    since_success_s: float
    stale: bool
    failures: int
    error: str
    def __init__(self, name: _Optional[str] = ..., since_success_s: _Optional[float] = ..., stale: _Optional[bool] = ..., failures: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class Reason(_message.Message):
    __slots__ = ("what", "number", "effect")
    WHAT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    what: str
    number: str
    effect: str
    def __init__(self, what: _Optional[str] = ..., number: _Optional[str] = ..., effect: _Optional[str] = ...) -> None: ...

class DecisionRecord(_message.Message):
    __slots__ = ("pod", "namespace", "pod_name", "container", "container_name", "numa_nodes", "cpus", "mems", "score", "reasons", "outcome", "nominated", "generation", "event")
    POD_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_NAME_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMS_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    pod: str
    namespace: str
    pod_name: str
    container: str
    container_name: str
    numa_nodes: str
    cpus: str
    mems: str
    score: float
    reasons: _containers.RepeatedCompositeFieldContainer[Reason]
    outcome: Outcome
    nominated: str
    generation: int
    event: str
    def __init__(self, pod: _Optional[str] = ..., namespace: _Optional[str] = ..., pod_name: _Optional[str] = ..., container: _Optional[str] = ..., container_name: _Optional[str] = ..., numa_nodes: _Optional[str] = ..., cpus: _Optional[str] = ..., mems: _Optional[str] = ..., score: _Optional[float] = ..., reasons: _Optional[_Iterable[_Union[Reason, _Mapping]]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., nominated: _Optional[str] = ..., generation: _Optional[int] = ..., event: _Optional[str] = ...) -> None: ...

class Gone(_message.Message):
    __slots__ = ("pods",)
    PODS_FIELD_NUMBER: _ClassVar[int]
    pods: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pods: _Optional[_Iterable[str]] = ...) -> None: ...

class Namespaces(_message.Message):
    __slots__ = ("settings",)
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    settings: _containers.RepeatedCompositeFieldContainer[NamespaceSettings]
    def __init__(self, settings: _Optional[_Iterable[_Union[NamespaceSettings, _Mapping]]] = ...) -> None: ...

class NamespaceSettings(_message.Message):
    __slots__ = ("name", "affinity_with", "max_exclusive_cpus", "max_group_size", "keys")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_WITH_FIELD_NUMBER: _ClassVar[int]
    MAX_EXCLUSIVE_CPUS_FIELD_NUMBER: _ClassVar[int]
    MAX_GROUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    name: str
    affinity_with: _containers.RepeatedScalarFieldContainer[str]
    max_exclusive_cpus: int
    max_group_size: int
    keys: AllowedKeys
    def __init__(self, name: _Optional[str] = ..., affinity_with: _Optional[_Iterable[str]] = ..., max_exclusive_cpus: _Optional[int] = ..., max_group_size: _Optional[int] = ..., keys: _Optional[_Union[AllowedKeys, _Mapping]] = ...) -> None: ...

class AllowedKeys(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class Expect(_message.Message):
    __slots__ = ("pod", "namespace", "name", "numa_nodes", "generation", "containers", "workload", "kin", "kin_elsewhere", "room_milli", "pod_demand", "planned", "replicas", "budget", "host_network", "scored")
    POD_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    KIN_FIELD_NUMBER: _ClassVar[int]
    KIN_ELSEWHERE_FIELD_NUMBER: _ClassVar[int]
    ROOM_MILLI_FIELD_NUMBER: _ClassVar[int]
    POD_DEMAND_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    HOST_NETWORK_FIELD_NUMBER: _ClassVar[int]
    SCORED_FIELD_NUMBER: _ClassVar[int]
    pod: str
    namespace: str
    name: str
    numa_nodes: str
    generation: int
    containers: _containers.RepeatedCompositeFieldContainer[ContainerDemand]
    workload: str
    kin: _containers.RepeatedCompositeFieldContainer[KinWeight]
    kin_elsewhere: float
    room_milli: int
    pod_demand: Demand
    planned: str
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaCount]
    budget: bool
    host_network: bool
    scored: bool
    def __init__(self, pod: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., numa_nodes: _Optional[str] = ..., generation: _Optional[int] = ..., containers: _Optional[_Iterable[_Union[ContainerDemand, _Mapping]]] = ..., workload: _Optional[str] = ..., kin: _Optional[_Iterable[_Union[KinWeight, _Mapping]]] = ..., kin_elsewhere: _Optional[float] = ..., room_milli: _Optional[int] = ..., pod_demand: _Optional[_Union[Demand, _Mapping]] = ..., planned: _Optional[str] = ..., replicas: _Optional[_Iterable[_Union[ReplicaCount, _Mapping]]] = ..., budget: _Optional[bool] = ..., host_network: _Optional[bool] = ..., scored: _Optional[bool] = ...) -> None: ...

class ReplicaCount(_message.Message):
    __slots__ = ("workload", "bound", "unbound")
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    UNBOUND_FIELD_NUMBER: _ClassVar[int]
    workload: str
    bound: int
    unbound: int
    def __init__(self, workload: _Optional[str] = ..., bound: _Optional[int] = ..., unbound: _Optional[int] = ...) -> None: ...

class ContainerDemand(_message.Message):
    __slots__ = ("name", "demand", "policy", "size", "init", "restartable", "slice")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    INIT_FIELD_NUMBER: _ClassVar[int]
    RESTARTABLE_FIELD_NUMBER: _ClassVar[int]
    SLICE_FIELD_NUMBER: _ClassVar[int]
    name: str
    demand: Demand
    policy: str
    size: int
    init: bool
    restartable: bool
    slice: int
    def __init__(self, name: _Optional[str] = ..., demand: _Optional[_Union[Demand, _Mapping]] = ..., policy: _Optional[str] = ..., size: _Optional[int] = ..., init: _Optional[bool] = ..., restartable: _Optional[bool] = ..., slice: _Optional[int] = ...) -> None: ...

class KinWeight(_message.Message):
    __slots__ = ("pod", "weight")
    POD_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    pod: str
    weight: float
    def __init__(self, pod: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class Traffic(_message.Message):
    __slots__ = ("seconds", "scale", "flows", "unattributed_bytes", "lost_bytes", "collector", "uses")
    class UsesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    UNATTRIBUTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    seconds: float
    scale: float
    flows: _containers.RepeatedCompositeFieldContainer[Flow]
    unattributed_bytes: int
    lost_bytes: int
    collector: str
    uses: _containers.ScalarMap[str, int]
    def __init__(self, seconds: _Optional[float] = ..., scale: _Optional[float] = ..., flows: _Optional[_Iterable[_Union[Flow, _Mapping]]] = ..., unattributed_bytes: _Optional[int] = ..., lost_bytes: _Optional[int] = ..., collector: _Optional[str] = ..., uses: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Flow(_message.Message):
    __slots__ = ("source", "target", "kind", "bytes", "messages", "by_server")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    BY_SERVER_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    kind: str
    bytes: int
    messages: int
    by_server: bool
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ..., kind: _Optional[str] = ..., bytes: _Optional[int] = ..., messages: _Optional[int] = ..., by_server: _Optional[bool] = ...) -> None: ...
