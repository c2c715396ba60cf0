"""Members whose NUMA node is hot are let out of it, and come home when it is cool."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from enforcer.hook import status_report
from enforcer.local.learned import kin_table
from lab.standins.machines import MACHINES
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.busy_node import BusyNode, FairNode, Wants
from tests.enforcer.hook.changing import without
from tests.enforcer.hook.world import container, pod
from tests.enforcer.restarts import Restarting

NAME = "power8-smt-off"
HOME, AWAY = CpuSet.parse("0,8,16,24,32"), CpuSet.parse("40,48,56,64,72")
WHOLE = HOME | AWAY
MINUTE = 12
"""Readings."""


@pytest.fixture(params=[False, True], ids=["by use", "by pressure"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> BusyNode:
    made = BusyNode(tmp_path, NAME, pressure=request.param)
    made.work({}, 2)
    return made


def members(node: BusyNode, count: int, **annotations: str) -> list[str]:
    names = [f"m{at}" for at in range(count)]
    assert {node.create(name, **{"group": "web", **annotations}) for name in names} == {HOME}
    return names


def busy(names: list[str], each: float = 1.0) -> Wants:
    return dict.fromkeys(names, (1, each))


CASES: dict[str, tuple[int, float, Wants]] = {
    "ten busy members, the other NUMA node idle": (10, 1.0, {}),
    "twenty, twice as many as CPUs": (20, 1.0, {}),
    "six of five": (6, 1.0, {}),
    "half of what they want is theirs": (15, 0.6, {}),
    "beside a busy pod that did not opt in": (10, 1.0, {"s0": (5, 1.0)}),
    "beside one with many threads": (10, 1.0, {"s0": (20, 1.0)}),
    "all of it full": (10, 1.0, {"s0": (10, 1.0)}),
}


@pytest.mark.parametrize(("count", "each", "others"), CASES.values(), ids=CASES)
def test_within_fifteen_seconds_nobody_has_less_than_without_cpusets(
    node: BusyNode, count: int, each: float, others: Wants
) -> None:
    for name in others:
        node.create(name)
    wants = busy(members(node, count), each) | others
    free = node.got(wants, dict.fromkeys(wants, WHOLE))
    got = node.work(wants, 3)
    for kind in "ms":
        assert sum(got[name] for name in wants if name[0] == kind) >= 0.98 * sum(
            free[name] for name in wants if name[0] == kind
        )
    settled = node.out()
    node.work(wants, MINUTE)
    assert node.out() == settled, "no more go than had to"


def test_as_few_leave_as_it_takes(node: BusyNode) -> None:
    names = members(node, 10)
    node.work(busy(names), 3)
    assert len(node.out()) == 5
    assert node.hot() == {str(HOME)}
    assert {node.cpusets[name] for name in node.out()} == {WHOLE}
    assert {node.cpusets[name] for name in set(names) - node.out()} == {HOME}


def test_where_few_cpus_are_shared_all_leave(node: BusyNode) -> None:
    names = members(node, 4)
    node.create("own", 2, cpus="exclusive", group="web")
    node.work(busy([*names, "own"]), 3)
    assert node.out() == set(names)


def test_where_few_cpus_are_shared_they_leave_also_when_others_fill_all_cpus(node: BusyNode) -> None:
    """Of three CPUs two members need a tenth. They wait behind a stranger's threads there, as they would anywhere, and
    have fewer CPUs to go to than without numakin.
    """
    names = members(node, 2)
    node.create("own", 2, cpus="exclusive", group="web")
    node.create("batch")
    wants = busy(names, 0.15) | {"batch": (16, 1.0)}
    node.work(wants, 3)
    assert node.out() == set(names)
    node.work(wants, MINUTE)
    assert node.out() == set(names)
    node.work(busy(names, 0.15), MINUTE)
    assert node.out() == set()


def test_of_more_cpus_they_stay_then(node: BusyNode) -> None:
    names = members(node, 2)
    node.create("batch")
    node.work(busy(names, 0.15) | {"batch": (20, 1.0)}, MINUTE)
    assert node.out() == set()


def test_one_burst_of_five_seconds_lets_nobody_out(node: BusyNode) -> None:
    names = members(node, 10)
    node.work(busy(names), 1)
    node.work({}, 3)
    assert (node.out(), node.hot()) == (set(), set())


def test_where_everything_is_full_of_members_nobody_gains_by_leaving(node: BusyNode) -> None:
    wants = busy(members(node, 10))
    for at in range(10):
        assert node.create(f"o{at}", group="bank") == AWAY
        wants[f"o{at}"] = (1, 1.0)
    node.work(wants, 6)
    assert (node.out(), node.hot()) == (set(), set())


UNEVEN: dict[str, tuple[dict[str, tuple[int, float]], bool]] = {
    "eight beside ten": ({f"o{at}": (1, 0.05) for at in range(8)}, True),
    "five beside ten": ({f"o{at}": (1, 0.05) for at in range(5)}, True),
    "two with many threads": ({"o0": (4, 0.05), "o1": (4, 0.05)}, True),
    "as many": ({f"o{at}": (1, 0.05) for at in range(10)}, False),
}
"""Who is on the other NUMA node: its threads and its request; and whether some of the ten are to be let out there."""


@pytest.mark.parametrize(("others", "relieved"), UNEVEN.values(), ids=UNEVEN)
@pytest.mark.parametrize("pressure", [False, True], ids=["by use", "by pressure"])
def test_of_two_full_numa_nodes_some_of_the_fuller_ones_members_run_on_both(
    tmp_path: Path, others: dict[str, tuple[int, float]], *, relieved: bool, pressure: bool
) -> None:
    """All are confined, so that nothing idles and nobody else has what some lack."""
    node = FairNode(tmp_path, NAME, pressure=pressure)
    node.work({}, 2)
    wants = busy(members(node, 10))
    for name, (threads, asked) in others.items():
        assert node.create(name, asked, group="bank") == AWAY
        wants[name] = (threads, 1.0)
    free, got = node.got(wants, dict.fromkeys(wants, WHOLE)), node.work(wants, 3)
    assert min(got[name] / free[name] for name in wants) >= 0.98
    out = node.out()
    assert out < {f"m{at}" for at in range(5)}
    assert bool(out) is relieved
    node.work(wants, MINUTE)
    assert node.out() == out


@pytest.mark.parametrize("pressure", [False, True], ids=["by use", "by pressure"])
def test_kin_beside_hogs_that_did_not_opt_in_have_as_much_as_they(tmp_path: Path, *, pressure: bool) -> None:
    """All CPUs are in use, as the hogs keep to those that the kin leave them: without numakin each pod has two thirds
    of a CPU, and kin that stay have half of one.
    """
    node = FairNode(tmp_path, NAME, pressure=pressure)
    node.work({}, 2)
    hogs = [f"h{at}" for at in range(5)]
    wants = busy([*members(node, 10), *hogs])
    for name in hogs:
        node.create(name)
    free, before = node.got(wants, dict.fromkeys(wants, WHOLE)), node.got(wants, node.cpusets)
    assert {round(before[name] / free[name], 2) for name in wants} == {0.75, 1.5}
    got = node.work(wants, 3)
    assert min(got[name] / free[name] for name in wants) >= 0.98
    out = node.out()
    node.work(wants, MINUTE)
    assert (node.out(), node.hot()) == (out, {str(HOME)})


def test_who_asked_for_more_has_more_and_others_are_not_let_out_to_it(node: BusyNode) -> None:
    """The kernel shares CPUs out by what was requested."""
    wants = busy(members(node, 10))
    assert node.create("large", 4, group="bank") == AWAY
    node.work(wants | {"large": (5, 1.0)}, 6)
    assert node.out() <= {"large"}


def test_where_those_who_left_have_less_than_those_who_stayed_more_leave(node: BusyNode) -> None:
    """Whole threads can't be shared out evenly: of three busy ones on two CPUs, one that is kept to one of them has
    three quarters of it, and the two others what is left.
    """
    names = members(node, 10)
    node.create("stranger")
    node.work(busy([*names, "stranger"]), 2)
    out = node.out()
    full = dict.fromkeys(WHOLE, 1.0)
    used = {name: 0.7 if name in out else 0.9 for name in names}
    for _ in range(3):
        node.pass_time(full, used, dict.fromkeys(names, 0.3))
    assert out < node.out()


def test_those_with_least_kin_there_go_first(node: BusyNode) -> None:
    names = members(node, 10)
    talking = [f"uid-{name}" for name in names[:5]]
    weights = {uid: {peer: 1.0 for peer in talking if peer != uid} for uid in talking}
    alone = {f"uid-{name}": {"uid-gone": 1.0} for name in names[5:]}
    node.agent.ledger.learned.weighed(kin_table(weights | alone))
    node.work(busy(names), 3)
    assert node.out() == {"m5", "m6", "m7", "m8", "m9"}


def test_members_come_home_once_it_was_cool_for_a_minute(node: BusyNode) -> None:
    names = members(node, 10)
    node.work(busy(names), 3)
    out = node.out()
    node.work(busy(names, 0.36), MINUTE)
    assert node.out() == out, "they would fill more than 70 % of it"
    node.work(busy(names, 0.3), MINUTE - 1)
    assert node.out() == out
    node.work(busy(names, 0.3), 2)
    assert (node.out(), node.hot()) == (set(), set())
    assert {node.cpusets[name] for name in names} == {HOME}
    assert node.agent.records.counts["let out"] == node.agent.records.counts["home again"] == len(out)


def test_a_container_whose_start_failed_keeps_no_domain_hot(node: BusyNode) -> None:
    names = members(node, 10)
    node.agent.create_container(pod("failed", group="web"), container("failed", 0.05))
    node.work(busy(names), 3)
    assert node.out()
    node.work({}, MINUTE + 1)
    assert (node.out(), node.hot()) == (set(), set())


def test_once_all_who_left_have_ended_it_is_cool_after_a_minute_too(node: BusyNode, caplog) -> None:
    """Newcomers find their kin's NUMA node again, and the log names it with both turns."""
    caplog.set_level(logging.INFO)
    node.work(busy(members(node, 10)), 3)
    for name in node.out():
        node.stop(name)
    node.work({}, MINUTE + 1)
    assert node.hot() == set()
    assert node.create("late", group="web") == HOME
    turns = [
        record for record in caplog.records if record.getMessage().startswith(("NUMA node 0 hot", "NUMA node 0 cool"))
    ]
    assert [record.getMessage()[:16] for record in turns] == ["NUMA node 0 hot:", "NUMA node 0 cool"]
    assert [str(record.fields["cpus"]) for record in turns] == [str(HOME)] * 2


def test_a_minute_that_is_interrupted_begins_anew(node: BusyNode) -> None:
    names = members(node, 10)
    node.work(busy(names), 3)
    for _ in range(3):
        node.work(busy(names, 0.1), MINUTE - 2)
        node.work(busy(names, 0.5), 1)
    assert node.out()


def test_who_waits_for_nothing_is_not_let_out(tmp_path: Path) -> None:
    """By the kernel's word; a NUMA node that is just in use harms nobody."""
    node = BusyNode(tmp_path, NAME, pressure=True)
    names = members(node, 5)
    node.work(busy(names, 0.95), 6)
    assert (node.out(), node.hot()) == (set(), set())


def test_a_newcomer_goes_elsewhere_while_it_is_hot_unless_it_was_nominated_before(node: BusyNode) -> None:
    names = members(node, 10)
    node.work(busy(names), 3)
    assert node.create("late", group="web") == AWAY
    why = "; ".join(next(row["reasons"] for row in _containers(node) if row["pod"] == "shop/late"))
    assert "hot: nearly all of its CPUs are in use while others idle" in why
    node.agent.expect(pb.Expect(pod="uid-named", namespace="shop", name="named", numa_nodes="0"))
    assert node.create("named", group="web") == HOME


@pytest.mark.parametrize(
    "annotations", [{"move": "never"}, {"policy": "single-numa-node"}], ids=["never moves", "asked for one NUMA node"]
)
def test_who_asked_to_stay_stays(node: BusyNode, annotations: dict[str, str]) -> None:
    names = members(node, 10, **annotations)
    node.work(busy(names), 6)
    assert node.out() == set()
    assert node.hot() == {str(HOME)}, "no newcomer goes there all the same"


def test_members_with_cpus_of_their_own_keep_them_and_nobody_is_let_out_onto_others(node: BusyNode) -> None:
    names = members(node, 8)
    mine = node.create("own", 1, cpus="exclusive", group="web")
    theirs = node.create("other", 2, cpus="exclusive", group="bank")
    assert (len(mine), len(theirs)) == (1, 2)
    node.work(busy([*names, "own", "other"]), 3)
    assert node.out() < set(names)
    assert node.out()
    assert {node.cpusets[name] for name in node.out()} == {WHOLE - mine - theirs}
    later = node.create("later", 2, cpus="exclusive", group="bank")
    assert {node.cpusets[name] for name in node.out()} == {WHOLE - mine - theirs - later}


def test_the_next_wider_set_is_the_sockets_and_then_the_machine(tmp_path: Path) -> None:
    name = "xeon-8480-snc4"
    node, machine = BusyNode(tmp_path, name), MACHINES[name].machine
    names = [f"m{at}" for at in range(40)]
    (home,) = {node.create(each, group="web") for each in names}
    socket = next(cpus for cpus in machine.sockets if home <= cpus)
    node.work({}, 2)
    node.work(busy(names), 3)
    assert {node.cpusets[each] for each in node.out()} == {socket}
    node.work(dict.fromkeys(names, (6, 1.0)), 4)
    assert machine.cpus in {node.cpusets[each] for each in node.out()}
    assert sum(node.work(dict.fromkeys(names, (6, 1.0)), 1).values()) >= 0.98 * len(machine.cpus)


def meanwhile(node: BusyNode, happens: Callable[[], object]) -> None:
    """Once it is known whom to let out, and before they are."""

    def refresh() -> None:
        for step in node.agent.refreshes:
            if isinstance(step, partial) and step.func == node.agent.relief._let_out:
                happens()
            step()

    node.agent.refresh = refresh  # type: ignore[method-assign]


def test_who_is_moved_while_it_is_looked_for_whom_to_let_out_is_at_its_new_home(tmp_path: Path) -> None:
    node = BusyNode(tmp_path, "xeon-8480-snc4")
    names = [f"m{at}" for at in range(40)]
    assert len({node.create(each, group="web") for each in names}) == 1
    node.work({}, 2)
    home = node.agent.occupancy.reservations["uid-m0"].numa_nodes
    other = str(max(node.machine.cpu_nodes))
    step = local.Moves.Step(ways=[local.Moves.Way(reservation="uid-m0", source=str(home), target=other)])
    offer = local.Moves(generation=1 << 32, traffic=1.0, pays=-9.0)
    meanwhile(node, lambda: node.carry_out(node.agent.moves.make(step, offer)))
    node.work(busy(names), 3)
    moved = node.agent.occupancy.reservations["uid-m0"]
    assert (str(moved.numa_nodes), moved.let_out) == (other, NumaSet())
    assert node.cpusets["m0"] == node.machine.node(int(other)).cpus
    assert node.out()


def test_nobody_is_let_out_to_a_numa_node_that_goes_while_it_is_looked_for_whom_to_let_out(node: BusyNode) -> None:
    names = members(node, 10)
    left = without(node.machine, gone=NumaSet.parse("1"))
    meanwhile(node, lambda: node.carry_out(node.agent.rehoming.onto(replace(node.facts, machine=left))))
    node.work(busy(names), 3)
    assert node.out() == set()


def test_who_is_out_leaves_a_numa_node_to_a_pod_that_asked_to_be_alone(node: BusyNode) -> None:
    names = members(node, 10)
    node.work(busy(names), 3)
    assert {node.cpusets[name] for name in node.out()} == {WHOLE}
    alone = {"qos_level": "dedicated_cores", "memory_enhancement": '{"numa_binding": "true", "numa_exclusive": "true"}'}
    own = node.create("own", 2, group="db", **{f"katalyst.kubewharf.io/{key}": said for key, said in alone.items()})
    assert own <= AWAY
    node.work(busy([*names, "own"]), 3)
    assert {node.cpusets[name] for name in names} == {HOME}


def test_status_says_who_is_out_and_why(node: BusyNode) -> None:
    names = members(node, 10)
    node.work(busy(names), 3)
    state = status_report.of(node.agent)
    assert state["hot"] == [str(HOME)]
    rows = {row["pod"]: row for row in _containers(node)}
    out = rows[f"shop/{min(node.out())}"]
    assert (out["numa_nodes"], out["let_out"], out["cpus"]) == ("0", "0-1", str(WHOLE))
    effect = f"CPUs {HOME} are 100% in use while others are not; 100% of its kin is there"
    assert out["reasons"][0] == f"let out NUMA node 0-1: {effect}"
    assert len(out["reasons"]) > 1, "why it lives there is told as before"
    at_home = rows[f"shop/{min(set(names) - node.out())}"]
    assert (at_home["let_out"], at_home["cpus"]) == ("", str(HOME))


def test_a_released_node_is_left_alone(node: BusyNode) -> None:
    names = members(node, 10)
    node.agent.release()
    node.cpusets |= dict.fromkeys(names, WHOLE)
    node.work(busy(names), 4)
    assert (node.out(), node.hot()) == (set(), set())


def test_an_unmade_update_is_not_taken_for_one_that_did_not_help(node: BusyNode) -> None:
    names = members(node, 10)
    wants = busy(names)
    node.work(wants, 2)
    at_home = dict(node.cpusets)
    node.work(wants, 1)
    node.cpusets = at_home  # the runtime has not got it yet
    node.agent.moves.take_along(node.agent.ledger.settle())
    node.agent.moves._unsent["m0"] = node.agent.ledger.updates([("m0", WHOLE)])[0]
    before = node.out()
    node.work(wants, 4)
    assert node.out() == before


def let_out(node: Restarting, name: str, to: NumaSet, *, carried_out: bool) -> None:
    """As the rule does it, to a runtime that may end before it carries it out."""
    assert node.agent is not None
    ledger = node.agent.ledger
    reservation = ledger.occupancy.reservations[f"uid-{name}"]
    ledger.occupancy = ledger.occupancy.with_reservation(replace(reservation, let_out=to))
    updates = ledger.settle()
    if carried_out:
        node.apply(updates)


def _containers(node: BusyNode) -> list[dict[str, Any]]:
    state: Any = status_report.of(node.agent)["containers"]
    return list(state)


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "lost"])
@pytest.mark.parametrize("ends", [True, False], ids=["killed", "registered again"])
def test_a_restart_leaves_those_who_are_out_outside(tmp_path: Path, *, carried_out: bool, ends: bool) -> None:
    node = Restarting(MACHINES[NAME].machine, tmp_path)
    for name in ("a", "b"):
        node.create(pod(name, group="web"), container(name))
    assert node.agent is not None
    let_out(node, "a", NumaSet.parse("0-1"), carried_out=carried_out)
    if ends:
        node.recorder.write()
        node.kill()
        node.start()
    else:
        node.synchronize()
    reservation = node.agent.occupancy.reservations["uid-a"]
    assert (reservation.numa_nodes, node.cpus("b")) == (NumaSet.parse("0"), HOME)
    if carried_out or not ends:
        assert (reservation.let_out, node.cpus("a")) == (NumaSet.parse("0-1"), WHOLE)
    let_out(node, "a", NumaSet(), carried_out=carried_out)
    node.synchronize()
    assert node.cpus("a") == HOME
    assert node.agent.occupancy.reservations["uid-a"].numa_nodes == NumaSet.parse("0")
