from numakin.wire import report_pb2 as _report_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FromHook(_message.Message):
    __slots__ = ("start", "report", "containers", "status", "appeared", "declined", "attachment", "counts")
    START_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    APPEARED_FIELD_NUMBER: _ClassVar[int]
    DECLINED_FIELD_NUMBER: _ClassVar[int]
    ATTACHMENT_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    start: Start
    report: _report_pb2.Report
    containers: Containers
    status: Status
    appeared: Appeared
    declined: Moves
    attachment: Attachment
    counts: Counts
    def __init__(self, start: _Optional[_Union[Start, _Mapping]] = ..., report: _Optional[_Union[_report_pb2.Report, _Mapping]] = ..., containers: _Optional[_Union[Containers, _Mapping]] = ..., status: _Optional[_Union[Status, _Mapping]] = ..., appeared: _Optional[_Union[Appeared, _Mapping]] = ..., declined: _Optional[_Union[Moves, _Mapping]] = ..., attachment: _Optional[_Union[Attachment, _Mapping]] = ..., counts: _Optional[_Union[Counts, _Mapping]] = ...) -> None: ...

class ToHook(_message.Message):
    __slots__ = ("who", "expect", "kin", "plan", "moves", "devices", "untold", "health", "gone", "namespaces", "uses")
    WHO_FIELD_NUMBER: _ClassVar[int]
    EXPECT_FIELD_NUMBER: _ClassVar[int]
    KIN_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    UNTOLD_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    who: Who
    expect: _report_pb2.Expect
    kin: KinTable
    plan: Plan
    moves: Moves
    devices: Devices
    untold: Untold
    health: Health
    gone: _report_pb2.Gone
    namespaces: _report_pb2.Namespaces
    uses: Uses
    def __init__(self, who: _Optional[_Union[Who, _Mapping]] = ..., expect: _Optional[_Union[_report_pb2.Expect, _Mapping]] = ..., kin: _Optional[_Union[KinTable, _Mapping]] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ..., moves: _Optional[_Union[Moves, _Mapping]] = ..., devices: _Optional[_Union[Devices, _Mapping]] = ..., untold: _Optional[_Union[Untold, _Mapping]] = ..., health: _Optional[_Union[Health, _Mapping]] = ..., gone: _Optional[_Union[_report_pb2.Gone, _Mapping]] = ..., namespaces: _Optional[_Union[_report_pb2.Namespaces, _Mapping]] = ..., uses: _Optional[_Union[Uses, _Mapping]] = ...) -> None: ...

class Health(_message.Message):
    __slots__ = ("degraded", "doing")
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    DOING_FIELD_NUMBER: _ClassVar[int]
    degraded: str
    doing: str
    def __init__(self, degraded: _Optional[str] = ..., doing: _Optional[str] = ...) -> None: ...

class Who(_message.Message):
    __slots__ = ("role",)
    ROLE_FIELD_NUMBER: _ClassVar[int]
    role: str
    def __init__(self, role: _Optional[str] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("node", "version", "session", "machine", "config")
    NODE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    node: str
    version: str
    session: str
    machine: _report_pb2.Machine
    config: str
    def __init__(self, node: _Optional[str] = ..., version: _Optional[str] = ..., session: _Optional[str] = ..., machine: _Optional[_Union[_report_pb2.Machine, _Mapping]] = ..., config: _Optional[str] = ...) -> None: ...

class Uses(_message.Message):
    __slots__ = ("milli",)
    class MilliEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    MILLI_FIELD_NUMBER: _ClassVar[int]
    milli: _containers.ScalarMap[str, int]
    def __init__(self, milli: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Attachment(_message.Message):
    __slots__ = ("confirmed_seconds_ago",)
    CONFIRMED_SECONDS_AGO_FIELD_NUMBER: _ClassVar[int]
    confirmed_seconds_ago: float
    def __init__(self, confirmed_seconds_ago: _Optional[float] = ...) -> None: ...

class Counts(_message.Message):
    __slots__ = ("outcomes", "events", "handler_faults", "late_answers", "connections", "losses", "handlers", "answers", "decisions")
    class OutcomesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class EventsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class HandlerFaultsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class HandlersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Durations
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Durations, _Mapping]] = ...) -> None: ...
    class AnswersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Durations
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Durations, _Mapping]] = ...) -> None: ...
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    HANDLER_FAULTS_FIELD_NUMBER: _ClassVar[int]
    LATE_ANSWERS_FIELD_NUMBER: _ClassVar[int]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    HANDLERS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.ScalarMap[str, int]
    events: _containers.ScalarMap[str, int]
    handler_faults: _containers.ScalarMap[str, int]
    late_answers: int
    connections: int
    losses: int
    handlers: _containers.MessageMap[str, Durations]
    answers: _containers.MessageMap[str, Durations]
    decisions: Durations
    def __init__(self, outcomes: _Optional[_Mapping[str, int]] = ..., events: _Optional[_Mapping[str, int]] = ..., handler_faults: _Optional[_Mapping[str, int]] = ..., late_answers: _Optional[int] = ..., connections: _Optional[int] = ..., losses: _Optional[int] = ..., handlers: _Optional[_Mapping[str, Durations]] = ..., answers: _Optional[_Mapping[str, Durations]] = ..., decisions: _Optional[_Union[Durations, _Mapping]] = ...) -> None: ...

class Durations(_message.Message):
    __slots__ = ("counts", "seconds")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    seconds: float
    def __init__(self, counts: _Optional[_Iterable[int]] = ..., seconds: _Optional[float] = ...) -> None: ...

class Untold(_message.Message):
    __slots__ = ("containers",)
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, containers: _Optional[_Iterable[str]] = ...) -> None: ...

class Containers(_message.Message):
    __slots__ = ("whole", "containers", "gone")
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    whole: bool
    containers: _containers.RepeatedCompositeFieldContainer[LocalContainer]
    gone: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, whole: _Optional[bool] = ..., containers: _Optional[_Iterable[_Union[LocalContainer, _Mapping]]] = ..., gone: _Optional[_Iterable[str]] = ...) -> None: ...

class LocalContainer(_message.Message):
    __slots__ = ("id", "name", "pod", "pod_name", "namespace", "pid", "cgroups_path", "host_network", "ips", "opted_in", "group", "workload", "move", "memory", "hugepages")
    class HugepagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    CGROUPS_PATH_FIELD_NUMBER: _ClassVar[int]
    HOST_NETWORK_FIELD_NUMBER: _ClassVar[int]
    IPS_FIELD_NUMBER: _ClassVar[int]
    OPTED_IN_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    HUGEPAGES_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    pod: str
    pod_name: str
    namespace: str
    pid: int
    cgroups_path: str
    host_network: bool
    ips: _containers.RepeatedScalarFieldContainer[str]
    opted_in: bool
    group: str
    workload: str
    move: str
    memory: int
    hugepages: _containers.ScalarMap[int, int]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., pod: _Optional[str] = ..., pod_name: _Optional[str] = ..., namespace: _Optional[str] = ..., pid: _Optional[int] = ..., cgroups_path: _Optional[str] = ..., host_network: _Optional[bool] = ..., ips: _Optional[_Iterable[str]] = ..., opted_in: _Optional[bool] = ..., group: _Optional[str] = ..., workload: _Optional[str] = ..., move: _Optional[str] = ..., memory: _Optional[int] = ..., hugepages: _Optional[_Mapping[int, int]] = ...) -> None: ...

class KinTable(_message.Message):
    __slots__ = ("rows", "generation", "session", "half_lives")
    class Row(_message.Message):
        __slots__ = ("pod", "kin", "elsewhere")
        POD_FIELD_NUMBER: _ClassVar[int]
        KIN_FIELD_NUMBER: _ClassVar[int]
        ELSEWHERE_FIELD_NUMBER: _ClassVar[int]
        pod: str
        kin: _containers.RepeatedCompositeFieldContainer[_report_pb2.KinWeight]
        elsewhere: float
        def __init__(self, pod: _Optional[str] = ..., kin: _Optional[_Iterable[_Union[_report_pb2.KinWeight, _Mapping]]] = ..., elsewhere: _Optional[float] = ...) -> None: ...
    ROWS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    HALF_LIVES_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[KinTable.Row]
    generation: int
    session: str
    half_lives: float
    def __init__(self, rows: _Optional[_Iterable[_Union[KinTable.Row, _Mapping]]] = ..., generation: _Optional[int] = ..., session: _Optional[str] = ..., half_lives: _Optional[float] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("workloads", "generation")
    class Slots(_message.Message):
        __slots__ = ("numa_node", "count")
        NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
        COUNT_FIELD_NUMBER: _ClassVar[int]
        numa_node: int
        count: int
        def __init__(self, numa_node: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...
    class Workload(_message.Message):
        __slots__ = ("name", "slots", "pulls", "demand")
        class PullsEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: int
            value: float
            def __init__(self, key: _Optional[int] = ..., value: _Optional[float] = ...) -> None: ...
        NAME_FIELD_NUMBER: _ClassVar[int]
        SLOTS_FIELD_NUMBER: _ClassVar[int]
        PULLS_FIELD_NUMBER: _ClassVar[int]
        DEMAND_FIELD_NUMBER: _ClassVar[int]
        name: str
        slots: _containers.RepeatedCompositeFieldContainer[Plan.Slots]
        pulls: _containers.ScalarMap[int, float]
        demand: _report_pb2.Demand
        def __init__(self, name: _Optional[str] = ..., slots: _Optional[_Iterable[_Union[Plan.Slots, _Mapping]]] = ..., pulls: _Optional[_Mapping[int, float]] = ..., demand: _Optional[_Union[_report_pb2.Demand, _Mapping]] = ...) -> None: ...
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    workloads: _containers.RepeatedCompositeFieldContainer[Plan.Workload]
    generation: int
    def __init__(self, workloads: _Optional[_Iterable[_Union[Plan.Workload, _Mapping]]] = ..., generation: _Optional[int] = ...) -> None: ...

class Appeared(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Devices(_message.Message):
    __slots__ = ("rows", "free")
    class Row(_message.Message):
        __slots__ = ("namespace", "pod", "container", "numa_nodes")
        NAMESPACE_FIELD_NUMBER: _ClassVar[int]
        POD_FIELD_NUMBER: _ClassVar[int]
        CONTAINER_FIELD_NUMBER: _ClassVar[int]
        NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
        namespace: str
        pod: str
        container: str
        numa_nodes: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, namespace: _Optional[str] = ..., pod: _Optional[str] = ..., container: _Optional[str] = ..., numa_nodes: _Optional[_Iterable[str]] = ...) -> None: ...
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[Devices.Row]
    free: _containers.RepeatedCompositeFieldContainer[_report_pb2.FreeDevices]
    def __init__(self, rows: _Optional[_Iterable[_Union[Devices.Row, _Mapping]]] = ..., free: _Optional[_Iterable[_Union[_report_pb2.FreeDevices, _Mapping]]] = ...) -> None: ...

class Moves(_message.Message):
    __slots__ = ("steps", "generation", "traffic", "pays", "plan", "proofs", "holds_s")
    class Step(_message.Message):
        __slots__ = ("ways", "gain", "whole")
        WAYS_FIELD_NUMBER: _ClassVar[int]
        GAIN_FIELD_NUMBER: _ClassVar[int]
        WHOLE_FIELD_NUMBER: _ClassVar[int]
        ways: _containers.RepeatedCompositeFieldContainer[Moves.Way]
        gain: float
        whole: bool
        def __init__(self, ways: _Optional[_Iterable[_Union[Moves.Way, _Mapping]]] = ..., gain: _Optional[float] = ..., whole: _Optional[bool] = ...) -> None: ...
    class Way(_message.Message):
        __slots__ = ("reservation", "source", "target", "source_domain", "target_domain")
        RESERVATION_FIELD_NUMBER: _ClassVar[int]
        SOURCE_FIELD_NUMBER: _ClassVar[int]
        TARGET_FIELD_NUMBER: _ClassVar[int]
        SOURCE_DOMAIN_FIELD_NUMBER: _ClassVar[int]
        TARGET_DOMAIN_FIELD_NUMBER: _ClassVar[int]
        reservation: str
        source: str
        target: str
        source_domain: str
        target_domain: str
        def __init__(self, reservation: _Optional[str] = ..., source: _Optional[str] = ..., target: _Optional[str] = ..., source_domain: _Optional[str] = ..., target_domain: _Optional[str] = ...) -> None: ...
    class Proof(_message.Message):
        __slots__ = ("reservations", "in_cache", "before", "promised", "after", "helped")
        RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
        IN_CACHE_FIELD_NUMBER: _ClassVar[int]
        BEFORE_FIELD_NUMBER: _ClassVar[int]
        PROMISED_FIELD_NUMBER: _ClassVar[int]
        AFTER_FIELD_NUMBER: _ClassVar[int]
        HELPED_FIELD_NUMBER: _ClassVar[int]
        reservations: _containers.RepeatedScalarFieldContainer[str]
        in_cache: bool
        before: float
        promised: float
        after: float
        helped: bool
        def __init__(self, reservations: _Optional[_Iterable[str]] = ..., in_cache: _Optional[bool] = ..., before: _Optional[float] = ..., promised: _Optional[float] = ..., after: _Optional[float] = ..., helped: _Optional[bool] = ...) -> None: ...
    STEPS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    PAYS_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PROOFS_FIELD_NUMBER: _ClassVar[int]
    HOLDS_S_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[Moves.Step]
    generation: int
    traffic: float
    pays: float
    plan: bool
    proofs: _containers.RepeatedCompositeFieldContainer[Moves.Proof]
    holds_s: float
    def __init__(self, steps: _Optional[_Iterable[_Union[Moves.Step, _Mapping]]] = ..., generation: _Optional[int] = ..., traffic: _Optional[float] = ..., pays: _Optional[float] = ..., plan: _Optional[bool] = ..., proofs: _Optional[_Iterable[_Union[Moves.Proof, _Mapping]]] = ..., holds_s: _Optional[float] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...
