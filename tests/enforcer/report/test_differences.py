"""What is told in differences adds up to what is, at the observer and at the extender."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from enforcer.local import report_differences
from enforcer.report.mirror import Mirror
from extender.reports import incoming
from extender.state.node_view import NodeView
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Live
from numakin.placement.model.rules import Rules
from numakin.placement.optin.options import Pool
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from numakin.placement.state.yielded import Yielded
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb
from tests import machines
from tests.enforcer.report.telling import changed, occupied, reports, started, welcomed


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=20),
    st.lists(st.sampled_from(["silent", "told", "lost", "broken"]), max_size=20),
)
def test_what_is_told_in_differences_adds_up_to_what_is(changes: list[tuple[bool, str]], fates: list[str]) -> None:
    """lost: the report goes out, and is lost with its stream; broken: the extender has it, and its answer is lost."""
    occupancy = Occupancy(generation=1)
    mirror = started(occupancy)
    backlog, reader = welcomed(mirror), Mirror()

    def told(*, received: bool = True, acknowledged: bool = True) -> None:
        for report in reports(backlog):
            if received:
                reader.reported(report)
            if acknowledged:
                backlog.acknowledged(pb.Ack(generation=report.generation))

    for index, (comes, name) in enumerate([(True, "a"), *changes]):
        after = occupied(occupancy, name) if comes else occupancy.without_pod(name)
        changed(mirror, occupancy, after)
        occupancy = after
        fate = fates[index] if index < len(fates) else "told"
        if fate != "silent":
            told(received=fate != "lost", acknowledged=fate == "told")
        if fate in ("lost", "broken"):
            acked = backlog.hello("1").hello.acked_generation
            backlog.welcomed(pb.Welcome(resume=acked > 0 and acked == reader.occupancy.generation))
    told()
    assert reader.occupancy.reservations == occupancy.reservations
    assert reader.occupancy.allocations == occupancy.allocations


MACHINE = machines.SMALL
amounts = st.integers(0, 1 << 40)
nodes = st.sets(st.sampled_from([*MACHINE.cpu_nodes]), min_size=1).map(NumaSet.of)
cpus = st.sets(st.sampled_from([*MACHINE.cpus]), max_size=6).map(CpuSet.of)
keys = st.sampled_from("abcde")
reservations = st.builds(
    Reservation,
    key=keys,
    pod=keys,
    group=st.sampled_from(["", "ns/web"]),
    numa_nodes=nodes,
    demand=st.builds(Demand, amounts, amounts, st.none() | amounts, st.dictionaries(st.just(2 << 20), amounts)),
    pool=st.sampled_from(Pool),
    alone=st.booleans(),
    size=st.integers(0, 9),
    workload=st.sampled_from(["", "ns/Deployment/web"]),
)
allocations = st.builds(
    Allocation,
    container=keys,
    name=st.just("main"),
    pod=keys,
    reservation=keys,
    cpus=cpus,
    mems=nodes,
    exclusive=cpus,
    externally_managed=st.booleans(),
)
lives = st.builds(
    Live,
    st.dictionaries(st.sampled_from([0, 1]), amounts),
    st.dictionaries(st.tuples(st.sampled_from([0, 1]), st.just(2 << 20)), amounts),
    st.dictionaries(st.sampled_from([0, 1]), amounts),
    st.dictionaries(st.sampled_from([0, 1]), st.floats(0, 1)),
)
changes = st.lists(
    st.tuples(
        st.dictionaries(keys, st.none() | reservations, max_size=2),
        st.dictionaries(keys, st.none() | allocations, max_size=2),
        lives,
    ),
    max_size=6,
)
OPERATED = st.builds(
    Occupancy,
    reserved=cpus,
    rules=st.builds(Rules, st.booleans(), st.integers(0, 9), st.booleans()),
    generation=st.just(1),
)

Message = TypeVar("Message", pb.Report, pb.Machine)


def sent(message: Message) -> Message:
    return type(message).FromString(message.SerializeToString())


def history(first: Occupancy, steps) -> Iterator[Occupancy]:
    """An occupancy as it becomes, change by change."""
    yield first
    for reservations, allocations, live in steps:
        named = {key: reservation and replace(reservation, key=key) for key, reservation in reservations.items()}
        held = {key: allocation and replace(allocation, container=key) for key, allocation in allocations.items()}
        first = first.changed(named, held, checked=False).with_live(first.live.after(live))
        yield first


@given(OPERATED, changes)
def test_all_that_the_hook_decides_by_is_what_the_observer_and_the_extender_hold(first: Occupancy, steps) -> None:
    """Field by field, those too that no report brings: each side plans, moves and scores by its own."""
    received = sent(convert.machine_to(MACHINE, first.reserved, first.rules))
    mirror = Mirror()
    mirror.started(local.Start(node="n1", session="s1", machine=received))
    machine, empty = incoming.machine(received)
    view = NodeView("n1", "s1", "1", machine, empty)
    states = [
        report_differences.ReportedNode(occupancy, registered=True, yielded=Yielded(at % 3, 4, at % 3 // 2))
        for at, occupancy in enumerate(history(first, steps))
    ]
    reports = [report_differences.report(None, states[0])]
    reports += [report_differences.report(before, after) for before, after in pairwise(states)]
    for report, now in zip(map(sent, reports), states, strict=True):
        mirror.reported(report)
        view = view.applied(incoming.report(report, machine))
        assert isinstance(view, NodeView)
        assert mirror.occupancy == now.occupancy
        assert view.reported.at_generation(view.generation) == now.occupancy
        assert mirror.yielded == view.yielded == now.yielded
        taken = now.occupancy.directory.exclusive
        assert mirror.occupancy.directory.exclusive == view.reported.directory.exclusive == taken


def test_another_hook_brings_its_operators_settings() -> None:
    mirror = started(Occupancy(generation=1))
    reserved = CpuSet.parse("0-1")
    mirror.started(
        local.Start(node="n1", session="s2", machine=convert.machine_to(MACHINE, reserved, Rules(everyone=True)))
    )
    mirror.reported(
        report_differences.report(None, report_differences.ReportedNode(Occupancy(generation=1), registered=True))
    )
    assert (mirror.occupancy.reserved, mirror.occupancy.rules) == (reserved, Rules(everyone=True))
