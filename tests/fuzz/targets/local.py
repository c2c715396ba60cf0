"""What comes to the hook's own socket, and what the hook wrote down itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from google.protobuf.message import DecodeError

from enforcer.hook.local_requests import LocalRequests
from enforcer.hook.ownership import checkpoint
from enforcer.local import control
from enforcer.local.control import LocalConnection
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.handlers import Updates
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import World
from tests.fuzz.target import Target, must, pieces


class _Connection(LocalConnection):
    """Without a socket: what is sent stays."""

    def __init__(self) -> None:
        super().__init__(None)

    def flush(self) -> bool:
        return True


class _Host:
    """What the hook's process offers, without its loop."""

    at_any_time = attached = True

    def __init__(self) -> None:
        self.world = World()
        self.agent = self.world.agent
        self.register_again: Callable[[str], None] = lambda _why: None

    def push(self, updates: Updates, on_answer: OnAnswer) -> None:
        on_answer(UpdateAnswer())

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None: ...

    def publish_soon(self) -> None: ...

    def send_unsent(self) -> None: ...

    def record(self) -> None: ...

    def status(self) -> dict[str, object]:
        return {"node": "n1"}

    def start_observer(self, connection: LocalConnection) -> None:
        connection.observing = True


def socket(data: bytes) -> None:
    """Framed messages in any pieces; then a member is still placed."""
    host = _Host()
    requests, connection, buffer = LocalRequests(host), _Connection(), bytearray()
    host.agent.create_container(*_member("first"))
    try:
        for part in pieces(data):
            buffer += part
            for body in control.taken(buffer):
                requests.received(connection, local.ToHook.FromString(body))
    except (ValueError, DecodeError):
        pass
    must(len(buffer) <= control.LARGEST_MESSAGE + 64, "no more than one message is kept")
    adjust, _ = host.agent.create_container(*_member("second"))
    must(adjust is not None or host.agent.ledger.released, "a member is still placed")
    must(not host.agent.records.counts["failed"], "no decision fails")


def file(data: bytes) -> None:
    """allocations.json: ValueError alone; what is taken is written again as it was understood."""
    try:
        past = checkpoint.read(data.decode(errors="replace"))
    except ValueError:
        return
    text = checkpoint.Wording().text(Occupancy(), past, released=past.released)
    must(checkpoint.read(text) == past, "what was read is written down alike")


def _member(name: str) -> tuple[nri.PodSandbox, nri.Container]:
    pod = nri.PodSandbox(id=f"p-{name}", name=name, namespace="shop", uid=f"u-{name}")
    pod.annotations["group.numakin.io"] = "cart"
    container = nri.Container(id=f"c-{name}", pod_sandbox_id=pod.id, name="main", annotations=pod.annotations)
    container.linux.cgroups_path = f"/kubepods/{name}"
    container.linux.resources.cpu.shares.value = 1024
    return pod, container


def _sockets() -> Iterator[bytes]:
    demand = pb.Demand(cpu_milli=1000, memory=1 << 30)
    expect = pb.Expect(pod="u-second", namespace="shop", name="second", numa_nodes="1", workload="shop/Deployment/cart")
    expect.containers.add(name="main", demand=demand)
    expect.kin.add(pod="u-first", weight=3.5)
    table = local.KinTable()
    table.rows.add(pod="u-second", kin=[{"pod": "u-first", "weight": 2.0}], elsewhere=1.0)
    plan = local.Plan(generation=2)
    plan.workloads.add(name="shop/Deployment/cart", slots=[{"numa_node": 1, "count": 2}], pulls={0: 1.0}, demand=demand)
    moves = local.Moves(generation=2, traffic=10.0, pays=0.002)
    moves.steps.add(ways=[{"reservation": "u-first", "source": "0", "target": "1"}], gain=0.5)
    devices = local.Devices(rows=[{"namespace": "shop", "pod": "second", "container": "main", "numa_nodes": ["1"]}])
    messages = [
        local.ToHook(who=local.Who(role="ask")),
        local.ToHook(who=local.Who(role="observer")),
        local.ToHook(who=local.Who(role="release")),
        local.ToHook(expect=expect),
        local.ToHook(kin=table),
        local.ToHook(plan=plan),
        local.ToHook(moves=moves),
        local.ToHook(devices=devices),
        local.ToHook(untold=local.Untold(containers=["a"])),
        local.ToHook(health=local.Health(degraded="slow")),
        local.ToHook(gone=pb.Gone(pods=["u-first"])),
    ]
    for message in messages:
        yield control.framed(message)
    yield b"".join(map(control.framed, messages))


def _files() -> Iterator[bytes]:
    world = World()
    world.agent.create_container(*_member("first"))
    own, container = _member("own")
    own.annotations["cpus.numakin.io"] = "exclusive"
    world.agent.create_container(own, container)
    ledger = world.agent.ledger
    yield checkpoint.Wording().text(ledger.occupancy, ledger.past, released=False).encode()
    world.agent.stop_container(own, container)
    yield checkpoint.Wording().text(ledger.occupancy, ledger.past, released=True).encode()


TARGETS = (
    Target("local-socket", socket, _sockets),
    Target("allocations-file", file, _files),
)
