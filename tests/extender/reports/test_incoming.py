"""Each field that an enforcer fills is as long as its written bound allows, and no longer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.reports import incoming
from extender.reports.incoming import BadMessage, OutOfBounds
from numakin.wire import bounds
from numakin.wire import report_pb2 as pb

BOUNDED: dict[str, tuple[Callable[[int], object], int]] = {
    "Hello.node": (lambda many: incoming.hello(hello(node="n" * many)), bounds.NAME_LENGTH),
    "Hello.session": (lambda many: incoming.hello(hello(session="s" * many)), bounds.ID_LENGTH),
    "Hello.version": (lambda many: incoming.hello(hello(version="1" * many)), bounds.TEXT_LENGTH),
    "Health.collector": (lambda many: incoming.health(pb.Health(collector="x" * many)), bounds.TEXT_LENGTH),
    "Health.runtime": (lambda many: incoming.health(pb.Health(runtime="x" * many)), bounds.TEXT_LENGTH),
    "Health.cpuset_owners": (lambda many: incoming.health(pb.Health(cpuset_owners="x" * many)), bounds.TEXT_LENGTH),
    "Health.threads": (lambda many: incoming.health(pb.Health(threads=[pb.ThreadHealth()] * many)), bounds.THREADS),
    "ThreadHealth.name": (lambda many: incoming.health(thread(name="x" * many)), bounds.TEXT_LENGTH),
    "ThreadHealth.error": (lambda many: incoming.health(thread(error="x" * many)), bounds.TEXT_LENGTH),
    "Health.devices": (lambda many: incoming.health(pb.Health(devices=[pb.Device()] * many)), bounds.DEVICES),
    "Device.address": (lambda many: incoming.health(device(address="x" * many)), bounds.NAME_LENGTH),
    "Device.kind": (lambda many: incoming.health(device(kind="x" * many)), bounds.NAME_LENGTH),
    "Device.driver": (lambda many: incoming.health(device(driver="x" * many)), bounds.NAME_LENGTH),
    "Device.names": (lambda many: incoming.health(device(names=["x"] * many)), bounds.DEVICE_NAMES),
    "Traffic.uses": (lambda many: incoming.uses(uses(many)), bounds.USES),
    "Flow.source": (lambda many: incoming.traffic(flow(source="x" * many)), bounds.ID_LENGTH),
    "Flow.target": (lambda many: incoming.traffic(flow(target="x" * many)), bounds.ID_LENGTH),
}


def hello(node: str = "n1", session: str = "s", version: str = "1") -> pb.Hello:
    return pb.Hello(node=node, session=session, version=version)


def thread(**fields: str) -> pb.Health:
    return pb.Health(threads=[pb.ThreadHealth(**fields)])


def device(**fields) -> pb.Health:
    return pb.Health(devices=[pb.Device(**fields)])


def uses(many: int) -> pb.Traffic:
    return pb.Traffic(uses={f"shop/ReplicaSet/w{number}": 1 for number in range(many)})


def flow(source: str = "a", target: str = "b") -> pb.Traffic:
    return pb.Traffic(flows=[pb.Flow(source=source, target=target)])


@pytest.mark.parametrize(("taken", "bound"), BOUNDED.values(), ids=BOUNDED.keys())
def test_a_field_is_taken_up_to_its_bound(
    taken: Callable[[int], object], bound: int, request: pytest.FixtureRequest
) -> None:
    try:
        taken(bound)
    except OutOfBounds:
        pytest.fail("the bound itself is refused")
    except BadMessage:
        pass  # so long a name is none that the API server takes
    field = request.node.callspec.id
    with pytest.raises(OutOfBounds, match=f"{field} has {bound + 1} (characters|entries); the bound is {bound}"):
        taken(bound + 1)


def test_a_version_is_shown_to_people_and_so_can_be_printed() -> None:
    with pytest.raises(BadMessage, match=r"Hello\.version has characters that can't be printed"):
        incoming.hello(hello(version="1\x1b[2J"))


def test_reports_of_the_largest_machines_are_taken_in_at_once() -> None:
    """A node that says all that it may holds up no other: with each NUMA node looked for among all of them it took a
    minute.
    """
    ids = range(bounds.NUMA_NODES)
    far = [pb.NumaNode(id=at, cpus=str(at), distances=[10 if at == other else 20 for other in ids]) for at in ids]
    machine, _ = incoming.machine(pb.Machine(name="largest", numa_nodes=far))
    everywhere = f"0-{bounds.NUMA_NODES - 1}"
    there = [pb.Reservation(key=f"k{at}", pod="p", numa_nodes=everywhere, let_out=everywhere) for at in range(1_000)]
    assert len(incoming.report(pb.Report(generation=1, reservations=there), machine).reservations) == 1_000
