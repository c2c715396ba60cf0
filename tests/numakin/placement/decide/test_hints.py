"""Topology-manager semantics: the kubelet's documented behaviours, and equality with its merge by brute force."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numakin.placement.decide import candidates
from numakin.placement.decide.decide import Kin, decide
from numakin.placement.decide.hints import Need, preferred
from numakin.placement.decide.survey import survey
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.errors import BadTopology
from numakin.placement.model.rules import Rules
from numakin.placement.optin.parsing import Cpus, Policy, Scope
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests import examples, machines
from tests.numakin.placement import kubelet
from tests.numakin.placement.asking import asks, cpus, demand, filled, nodes, settle
from tests.numakin.placement.kubelet_tables import ALIGNED_BY_SOCKET

BEST, RESTRICTED, SINGLE, NONE = Policy.BEST_EFFORT, Policy.RESTRICTED, Policy.SINGLE_NUMA_NODE, Policy.NONE
POLICIES = (NONE, BEST, RESTRICTED, SINGLE)
TWO = machines.SMALL  # 4 CPUs and 8 GiB on each of two NUMA nodes
FOUR = machines.machine("four", ["0-3", "4-7", "8-11", "12-15"], [8, 8, 8, 8])
SHORT = "short on every NUMA node"

# What is on the machine before; what is asked; who of (none, best-effort, restricted, single-numa-node) admits; the
# preferred bit; the width of the set. This is the kubelet's merge, with CPU and memory as one resource.
BEHAVIOURS = {
    "fits one NUMA node": (TWO, [], {"cpu": 2}, "yyyy", True, 1),
    "fills one NUMA node": (TWO, [], {"cpu": 4}, "yyyy", True, 1),
    "over one NUMA node by its size": (TWO, [], {"cpu": 6}, "yyyn", True, 2),
    "over one NUMA node by what is taken": (TWO, [3, 3], {"cpu": 2}, "yynn", False, 2),
    "one NUMA node taken, the other free": (TWO, [4], {"cpu": 4}, "yyyy", True, 1),
    "memory over one NUMA node by its size": (TWO, [], {"cpu": 1, "memory": 12}, "yyyn", True, 2),
    "a device where CPUs are free": (TWO, [], {"cpu": 2, "devices": ["1"]}, "yyyy", True, 1),
    "a device where CPUs are taken": (TWO, [4], {"cpu": 2, "devices": ["0"]}, "yynn", False, 1),
    "two devices on two NUMA nodes": (TWO, [], {"cpu": 2, "devices": ["0", "1"]}, "yynn", False, 1),
    "two devices on one NUMA node": (TWO, [], {"cpu": 2, "devices": ["1", "1"]}, "yyyy", True, 1),
    "a device without a NUMA node": (TWO, [], {"cpu": 2, "devices": [""]}, "yyyy", True, 1),
    "wide, with a device on one of them": (TWO, [], {"cpu": 6, "devices": ["1"]}, "yynn", False, 2),
    "wide, with a device near both of them": (TWO, [], {"cpu": 6, "devices": ["0-1"]}, "yynn", False, 2),
    "wide by its memory, with a device": (TWO, [], {"cpu": 1, "memory": 12, "devices": ["0"]}, "yynn", False, 2),
    "wide by its CPUs alone": (TWO, [], {"cpu": 6, "memory": 2}, "yyyn", True, 2),
    "nothing asked": (TWO, [4, 4], {"cpu": 0, "memory": 0}, "yyyy", True, 1),
    "three NUMA nodes of four": (FOUR, [], {"cpu": 10}, "yyyn", True, 3),
    "three where two would do": (FOUR, [3, 3, 1, 1], {"cpu": 7}, "yynn", False, 3),
}  # fmt: skip


@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_each_policy_admits_as_the_kubelet_documents(name, scope):
    machine, taken, wanted, admits, preferred, width = BEHAVIOURS[name]
    before = filled(machine, *(asks(f"t{at}", cpu, 0, group=f"x/{at}") for at, cpu in enumerate(taken)))
    for policy, output in zip(POLICIES, admits, strict=True):
        decision = decide(machine, before, asks("a", policy=policy, scope=scope, **wanted), Kin())
        assert decision.admitted == (output == "y"), policy
        if policy in {BEST, RESTRICTED}:
            assert decision.preferred == preferred
            assert len(decision.numa_nodes) == width
    assert decide(machine, before, asks("a", policy=SINGLE, **wanted), Kin()).preferred == (admits[3] == "y")


@pytest.mark.parametrize("policy", [RESTRICTED, SINGLE])
def test_what_a_policy_would_not_admit_is_still_placed_as_well_as_can_be(policy):
    before = filled(TWO, asks("t", 3), asks("u", 3))
    decision = decide(TWO, before, asks("a", 2, policy=policy), Kin())
    assert (decision.admitted, decision.fits, decision.score) == (False, True, 0.0)
    assert decision.cpus == cpus("0-7")
    assert f"policy {policy}: would not admit this" in decision.sentence


def test_pod_scope_aligns_the_pod_as_one_and_container_scope_each_container():
    pod = demand(6)
    as_one = asks("a", 3, name="web", pod_demand=pod, policy=SINGLE)
    by_itself = asks("a", 3, name="web", pod_demand=pod, policy=SINGLE, scope=Scope.CONTAINER)
    assert not decide(TWO, Occupancy(), as_one, Kin()).admitted
    decision, after = settle(TWO, Occupancy(), by_itself)
    assert decision.admitted
    other = asks("a", 3, name="db", pod_demand=pod, policy=SINGLE, scope=Scope.CONTAINER)
    decision = decide(TWO, after, other, Kin())
    assert (decision.admitted, decision.numa_nodes) == (True, nodes("1"))


def test_hugepages_of_each_size_are_a_resource_of_their_own():
    request = asks("a", 1, 1, hugepages={machines.GIB: 2 * machines.GIB}, policy=SINGLE)
    decision, after = settle(machines.HUGE, Occupancy(), request)
    assert (decision.numa_nodes, decision.admitted) == (nodes("1"), True)
    both = {machines.GIB: 7 * machines.GIB, 2 << 20: 2 << 20}
    assert not decide(machines.HUGE, after, asks("b", 1, 1, hugepages=both, policy=SINGLE), Kin()).admitted
    odd = asks("c", 1, 1, hugepages={64 << 10: 64 << 10})
    assert not decide(machines.HUGE, Occupancy(), odd, Kin()).fits


def test_the_closest_numa_nodes_are_preferred_when_the_option_is_on():
    # 1 and 2 are the emptier, and far from each other; 2 and 3 are near
    before = filled(machines.KUNPENG_920, *(asks(f"t{entry}", milli, 0, group=f"x/{entry}") for entry, milli in
                                            enumerate((16, 0, 0, 8))))  # fmt: skip
    near = decide(machines.KUNPENG_920, before, asks("a", 40, 0), Kin())
    far = decide(
        machines.KUNPENG_920, replace(before, rules=Rules(prefer_closest_numa_nodes=False)), asks("a", 40, 0), Kin()
    )
    assert near.numa_nodes == nodes("2-3")
    assert far.numa_nodes == nodes("1-2")


def test_a_machine_with_more_numa_nodes_than_allowed_is_refused_by_name():
    Rules(max_allowable_numa_nodes=16).check(machines.SIXTEEN)
    Rules().check(machines.THIRTY_TWO)
    with pytest.raises(BadTopology) as refused:
        Rules(max_allowable_numa_nodes=8).check(machines.SIXTEEN)
    assert str(refused.value) == "max-allowable-numa-nodes is 8, the machine has 16 NUMA nodes"


@pytest.mark.parametrize(
    ("rules", "reserved", "says"),
    [
        (Rules(max_allowable_numa_nodes=-1), "", "max-allowable-numa-nodes must not be negative, as -1 is"),
        (Rules(), "7-9", "reserved-cpus names CPUs 8-9, the machine's online CPUs are 0-7"),
        (Rules(), "0-7", "reserved-cpus 0-7 leaves no CPU for containers"),
    ],
)
def test_settings_that_do_not_suit_the_machine_are_refused_by_name(rules, reserved, says):
    with pytest.raises(BadTopology) as refused:
        rules.check(TWO, cpus(reserved))
    assert str(refused.value) == says


amounts = st.integers(0, 6)
tables = st.fixed_dictionaries(dict.fromkeys(range(4), amounts))


@st.composite
def providers(draw):
    result = []
    for number in range(draw(st.integers(1, 3))):
        needs = []
        for part in range(draw(st.integers(1, 2))):
            capacity = draw(tables)
            free = {entry: min(draw(amounts), most) for entry, most in capacity.items()}
            needs.append(Need(f"{number}.{part}", draw(st.integers(0, 14)), capacity, free))
        result.append(tuple(needs))
    return result


@settings(max_examples=examples.of(300), deadline=None)
@given(providers(), st.integers(1, 4))
def test_the_preferred_bit_is_the_kubelets_for_any_hints(wanted, count):
    everywhere = range(count)
    wanted = [tuple(Need(entry.name, entry.amount, {k: v for k, v in entry.capacity.items() if k < count},
                         {k: v for k, v in entry.available.items() if k < count}) for entry in each) for each in wanted]  # fmt: skip
    for single in (False, True):
        expected = kubelet.merged(wanted, everywhere, single=single)[1]
        assert preferred(wanted, everywhere, single=single) == expected


SOCKETS = st.sampled_from([{0: 0, 1: 1, 2: 2, 3: 3}, {0: 0, 1: 0, 2: 1, 3: 1}, dict.fromkeys(range(4), 0)])


@settings(max_examples=examples.of(300), deadline=None)
@given(providers(), SOCKETS)
def test_so_it_is_for_cpus_that_are_aligned_by_socket(wanted, sockets):
    socketed = replace(FOUR, sockets=_as_cpus(sockets))
    for single in (False, True):
        expected = kubelet.merged(wanted, range(4), single=single, sockets=None if single else sockets)[1]
        assert (
            preferred(wanted, range(4), single=single, sockets=partial(candidates.on_few_sockets, socketed)) == expected
        )


def _as_cpus(sockets):
    return tuple(
        cpus(",".join(f"{4 * node}-{4 * node + 3}" for node, socket in sockets.items() if socket == number))
        for number in sorted({*sockets.values()})
    )


@pytest.mark.parametrize("case", ALIGNED_BY_SOCKET.values(), ids=ALIGNED_BY_SOCKET)
def test_align_by_socket_prefers_the_kubelets_sets(case):
    machine, free, wanted, on, expected = case
    capacity = {node.id: len(node.cpus) for node in machine.numa_nodes}
    available = {node.id: len(node.cpus & cpus(free)) for node in machine.numa_nodes}
    sockets = {node: min(machine.sockets_of[node]) for node in capacity}
    found = kubelet.hints((Need("CPU", wanted, capacity, available),), [*capacity], sockets if on else None)
    assert {str(NumaSet.of(entry)): preferred for entry, preferred in found} == expected


# NUMA nodes 0 and 1 are a socket, 2 and 3 another; so many of the four CPUs of each are taken.
@pytest.mark.parametrize(
    ("taken", "wanted", "off", "on", "admitted"),
    [
        pytest.param([3, 3, 1, 1], 2, "2", "2", True, id="one NUMA node does"),
        pytest.param([2, 2, 2, 2], 4, "1-2", "0-1", True, id="a socket in place of one NUMA node"),
        pytest.param([0, 4, 4, 2], 5, "0,3", "0,3", True, id="no socket has room, and no fewer NUMA nodes would do"),
        pytest.param([3, 3, 3, 3], 4, "0-3", "0-3", False, id="no socket has room for what one NUMA node would hold"),
        pytest.param([3, 0, 0, 1], 7, "1-2", "2-3", True, id="the other socket has room, which is farther or fuller"),
    ],
)
def test_align_by_socket_takes_few_sockets_and_admits_what_is_on_them(taken, wanted, off, on, admitted):
    machine = replace(FOUR, sockets=(cpus("0-7"), cpus("8-15")))
    before = Occupancy()
    for at, cpu in enumerate(taken):
        before = before.with_reservation(Reservation(f"t{at}", f"t{at}", "x/t", nodes(str(at)), demand(cpu)))
    request, kin = asks("a", wanted, 0, policy=RESTRICTED), Kin(weights={"t1": 1.0, "t2": 1.0})
    aligned = decide(machine, replace(before, rules=Rules(align_by_socket=True)), request, kin)
    assert (str(decide(machine, before, request, kin).numa_nodes), str(aligned.numa_nodes)) == (off, on)
    assert aligned.admitted == admitted


def test_a_wider_set_is_taken_where_that_takes_fewer_sockets():
    machine = machines.machine(
        "two sockets of three", ["0-3", "4-7", "8-11", "12-15", "16-19", "20-23"], [8] * 6, sockets=["0-11", "12-23"]
    )
    before = Occupancy(reserved=cpus("0-1,4-5,8-9,12-14,16-18"))
    request = asks("a", 6, 0, policy=RESTRICTED)
    plain, aligned = (
        decide(machine, replace(before, rules=Rules(align_by_socket=on)), request, Kin()) for on in (False, True)
    )
    assert (str(plain.numa_nodes), plain.admitted) == ("0,5", True)
    assert (str(aligned.numa_nodes), aligned.admitted) == ("0-2", True)


@st.composite
def situations(draw):
    machine = draw(st.sampled_from([TWO, FOUR, machines.CPU_ONLY_NODE, machines.HUGE, machines.KUNPENG_920]))
    most = max(machine.cpu_counts.values())
    before = Occupancy(reserved=draw(st.sampled_from([cpus(""), cpus("0")])))
    kinds = st.sampled_from([Cpus.SHARED, Cpus.EXCLUSIVE])
    for at in range(draw(st.integers(0, 5))):
        request = asks(f"t{at}", draw(st.integers(0, most)), draw(st.integers(0, 6)), group=f"x/{at}", cpus=draw(kinds))
        before = filled(machine, request, occupancy=before)
    request = asks(
        "a",
        draw(st.integers(0, most * 3)),
        draw(st.integers(0, 30)),
        cpus=draw(kinds),
        devices=draw(st.lists(st.sampled_from(["0", "1", "0-1", ""]), max_size=2)),
        policy=draw(st.sampled_from([BEST, RESTRICTED, SINGLE])),
    )
    return machine, before, request


@settings(max_examples=examples.of(200), deadline=None)
@given(situations())
def test_admits_and_narrowest_sets_are_the_kubelets(situation):
    machine, before, request = situation
    decision = decide(machine, before, request, Kin())
    room = survey(machine, before, request, Kin())
    wanted = room.providers()
    everywhere = [node.id for node in machine.numa_nodes]
    policy = request.opt_in.policy
    assert decision.admitted == kubelet.admits(policy, wanted, everywhere)
    chosen, preferred = kubelet.merged(wanted, everywhere, single=policy is SINGLE)
    assert decision.preferred == preferred or not decision.fits
    silent = not any(need.amount > 0 for provider in wanted for need in provider)
    if chosen is None or not decision.fits or silent:
        return
    mask = sum(1 << entry for entry in chosen)
    if chosen <= set(room.usable) and preferred and room.weigh(mask).fits and not room.weigh(mask).misses:
        assert len(decision.numa_nodes) == len(chosen), "the kubelet's set holds the demand: ours is no wider"


def test_thirty_two_numa_nodes_are_decided_without_looking_at_every_set():
    weighed = 0
    before = filled(
        machines.THIRTY_TWO,
        *(asks(f"t{number}", 5, 20, group=f"x/{number}") for number in range(32)),
        occupancy=Occupancy(),
    )
    room = survey(machines.THIRTY_TWO, before, asks("a", 60, 100), Kin())
    for width in range(1, 33):
        weighed += len(list(candidates.of_width(machines.THIRTY_TWO, [*room.usable], width, room.headroom.cpu)))
    assert weighed <= 3 * 32**2
    decision = decide(machines.THIRTY_TWO, before, asks("a", 60, 100), Kin())
    assert (decision.fits, len(decision.numa_nodes)) == (True, 20)


def test_single_numa_node_is_not_told_of_memory_where_no_cpu_is_usable():
    """The request names no CPU, so that memory alone decides; that of NUMA node 0 is beside CPUs of another's own."""
    machine = machines.machine("three", ["0-1", "2-3", "4-5"], [8, 3, 3])
    taken = filled(machine, asks("x", 2, 0, cpus=Cpus.EXCLUSIVE))
    assert str(taken.exclusive) == "0-1"
    assert not decide(machine, taken, asks("a", 0, 5, policy=SINGLE), Kin()).admitted
