"""Laws of decide(), over random machines, lives and pod_options."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from numakin.placement.decide import relief
from numakin.placement.decide.choice import narrowest
from numakin.placement.decide.decide import Kin, Request, decide
from numakin.placement.decide.survey import survey
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.live_usage import Live
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.optin.parsing import Cpus, Memory, Pool, Span
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Occupancy
from tests import examples, machines
from tests.numakin.placement.asking import asks, settle


@st.composite
def some_machine(draw) -> Machine:
    """Up to six NUMA nodes, some without CPUs, some without memory, with gaps in ids, offline CPUs and odd distances, and
    caches of a few CPUs.
    """
    count = draw(st.integers(1, 6))
    ids = sorted(draw(st.sets(st.integers(0, 20), min_size=count, max_size=count)))
    numa_nodes, first = [], 0
    for entry in ids:
        width = draw(st.sampled_from([0, 1, 2, 4, 6, 10]))
        cpus = [first + at for at in range(width) if not draw(st.booleans()) or draw(st.booleans())]
        first += width
        distances = {other: 10 if other == entry else draw(st.sampled_from([11, 12, 20, 21, 40, 255])) for other in ids}
        numa_nodes.append(NumaNode(entry, CpuSet.of(cpus), draw(st.integers(0, 8)) * machines.GIB, distances))
    if not any(node.cpus for node in numa_nodes):
        numa_nodes[0] = replace(numa_nodes[0], cpus=CpuSet.of([first]))
    online = [cpu for node in numa_nodes for cpu in node.cpus]
    isolated = (
        CpuSet.of(draw(st.sets(st.sampled_from(online), max_size=len(online) - 1))) if draw(st.booleans()) else CpuSet()
    )
    withheld = draw(st.sets(st.sampled_from(ids))) if draw(st.booleans()) else set()
    numa_nodes = [
        replace(node, cpus=node.cpus - isolated, isolated=node.cpus & isolated, withheld=node.id in withheld)
        for node in numa_nodes
    ]
    threads = draw(st.sampled_from([0, 2, 4, 8]))
    cores = [CpuSet.of(online[at : at + threads]) for at in range(0, len(online), threads)] if threads else []
    whole = [core for core in cores if any(core <= node.all_cpus for node in numa_nodes)]
    caches = [CpuSet.of(online[at : at + 4]) for at in range(0, len(online), 4)] if draw(st.booleans()) else []
    each = draw(st.sampled_from([0, 3, 8, 16]))
    sockets = [CpuSet.of(online[at : at + each]) for at in range(0, len(online), each)] if each else []
    return Machine(tuple(numa_nodes), cores=tuple(whole), caches=tuple(caches), sockets=tuple(sockets))


operators_rules = st.builds(
    Rules,
    everyone=st.booleans(),
    distribute_cpus_across_numa=st.booleans(),
    distribute_cpus_across_cores=st.booleans(),
    align_by_socket=st.booleans(),
)


pod_options = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([0, 0.3, 1, 2, 3.5, 7]),
        "memory": st.sampled_from([0, 0.5, 2, 6]),
        "limit": st.sampled_from([0, None, 8]),
        "cpus": st.sampled_from(list(Cpus)),
        "mems": st.sampled_from(list(Memory)),
        "pool": st.sampled_from(list(Pool)),
        "alone": st.sampled_from([False, False, False, True]),
        "group": st.sampled_from(["shop/a", "shop/b", ""]),
        "devices": st.sampled_from([[], ["0"], ["1", "2"]]),
        "span": st.sampled_from([None, *Span]),
    }
)
kins = st.builds(
    Kin,
    weights=st.dictionaries(st.sampled_from([f"p{at}" for at in range(8)]), st.floats(0, 100), max_size=4),
    elsewhere=st.floats(0, 10),
    expected=st.builds(NumaSet.of, st.sets(st.integers(0, 20), max_size=2)),
    planned=st.builds(NumaSet.of, st.sets(st.integers(0, 20), max_size=2)),
    room_milli=st.integers(0, 9000),
)


def check(machine: Machine, before: Occupancy, request: Request, kin: Kin) -> Occupancy:
    """One decision against every law; the occupancy after it."""
    decision, after = settle(machine, before, request, kin)  # AlreadyHeld here would be a broken law
    assert decision == decide(machine, before, request, kin), "same inputs, same answer"
    assert decision.cpus <= machine.cpus
    assert decision.exclusive <= decision.cpus
    assert decision.exclusive.isdisjoint(before.reserved)
    assert decision.mems <= machine.mems
    assert decision.numa_nodes <= machine.cpu_nodes
    assert 0.0 <= decision.score <= 1.0
    assert len(decision.sentence.encode()) <= 1024
    if decision.fits:
        assert decision.cpus
        where = decision.let_out or decision.numa_nodes
        assert decision.cpus <= machine.cpus_of(where) or request.pool is Pool.RESERVED
        assert bool(decision.exclusive) == (request.wants_exclusive and not decision.shares_instead)
        if decision.exclusive:
            assert len(decision.exclusive) >= request.demand.whole_cpus
        if decision.exclusive and request.opt_in.cpus is Cpus.EXCLUSIVE_CORES:
            assert all(machine.core_of(cpu) <= decision.exclusive for cpu in decision.exclusive)
    else:
        own = before.allocations[request.container].exclusive if request.container in before.allocations else CpuSet()
        left = machine.cpus - (before.exclusive - own)
        assert decision.cpus == (left if left != machine.cpus else CpuSet())
        assert (decision.mems, decision.exclusive) == (NumaSet(), CpuSet())
        assert decision.score == 0.0
    assert all(cpus for _, cpus in decision.updates)
    return after


@settings(max_examples=examples.of(150), deadline=None)
@given(some_machine(), st.lists(pod_options, max_size=4), pod_options)
def test_what_fits_on_some_numa_nodes_fits_on_all_and_is_no_narrower_than_each_resource_needs(machine, first, asked):
    """The two shortcuts of the search for the narrowest set cut off nothing."""
    occupancy = Occupancy()
    for number, options in enumerate(first):
        _, occupancy = settle(machine, occupancy, asks(f"p{number}", **options))
    room = survey(machine, occupancy, asks("new", **asked), Kin())
    sets = [
        sum(1 << node for node in chosen)
        for width in range(1, len(room.usable) + 1)
        for chosen in combinations(room.usable, width)
    ]
    fitting = [mask for mask in sets if room.weigh(mask).fits]
    assert bool(fitting) <= room.fits_at_all()
    if fitting:
        assert min(mask.bit_count() for mask in fitting) >= room.least_width()


@settings(max_examples=examples.of(150), deadline=None)
@given(
    some_machine(),
    st.lists(pod_options, max_size=4),
    pod_options,
    st.dictionaries(st.sampled_from([f"p{number}" for number in range(4)]), st.sampled_from([1.0, 2.0, 5.0])),
    st.dictionaries(st.integers(0, 20), st.sampled_from([0.0, 0.5])),
)
def test_no_numa_node_that_was_not_weighed_would_have_been_better(machine, first, asked, weights, stalled):
    """The search for the best one ends where what is left has less kin."""
    ids = {numa_node.id for numa_node in machine.numa_nodes}
    occupancy = Occupancy(live=Live(stalled={node: share for node, share in stalled.items() if node in ids}))
    for number, options in enumerate(first):
        _, occupancy = settle(machine, occupancy, asks(f"p{number}", **options))
    room = survey(machine, occupancy, asks("new", **asked), Kin(weights))
    weighed = [room.weigh(1 << node) for node in room.usable]
    fitting = [candidate for candidate in weighed if candidate.fits]
    if room.least_width() == 1 and fitting:
        closest = occupancy.rules.prefer_closest_numa_nodes
        assert narrowest(room) == min(fitting, key=lambda candidate: candidate.rank(closest=closest))


class Lives(RuleBasedStateMachine):
    """Pods of all kinds come, restart, stop and go on one machine."""

    machine: Machine

    @rule(machine=some_machine(), reserve=st.booleans(), rules=operators_rules)
    def starts(self, machine, reserve, rules):
        self.machine = machine
        reserved = CpuSet.of([machine.cpus.lowest]) if reserve and len(machine.cpus) > 1 else CpuSet()
        self.occupancy = Occupancy(reserved=reserved, rules=rules)
        self.requests = {}
        self.left_open = set()

    def ready(self):
        return hasattr(self, "occupancy")

    @rule(number=st.integers(0, 7), options=pod_options, kin=kins)
    def comes(self, number, options, kin):
        if not self.ready():
            return
        pod = f"p{number}"
        if pod in self.requests:
            return
        self.requests[pod] = asks(pod, **options)
        self.decided(self.requests[pod], kin)

    def decided(self, request, kin):
        self.occupancy = check(self.machine, self.occupancy, request, kin)
        if not self.occupancy.allocations[request.container].placed:
            self.left_open.add(request.pod)

    @rule(number=st.integers(0, 7), kin=kins)
    def is_asked_again(self, number, kin):
        if self.ready() and (request := self.requests.get(f"p{number}")):
            self.decided(request, kin)

    @rule(number=st.integers(0, 7))
    def stops(self, number):
        if self.ready():
            self.settle_pools(self.occupancy.without_allocation(f"p{number}-main"))

    @rule(number=st.integers(0, 7))
    def goes(self, number):
        if self.ready() and self.requests.pop(f"p{number}", None):
            self.left_open.discard(f"p{number}")
            self.settle_pools(self.occupancy.without_pod(f"p{number}"))

    @rule(at=st.integers(0, 40), hot=st.booleans())
    def gets_hot_or_cool(self, at, hot):
        if self.ready():
            masks = [domain.cpus.mask for domain in relief.domains(self.machine, self.occupancy)]
            news = Live(hot={masks[at % len(masks)]: hot}) if masks else Live()
            self.settle_pools(self.occupancy.with_live(self.occupancy.live.after(news)))

    @rule(number=st.integers(0, 7), at=st.integers(0, 2))
    def is_let_out_or_comes_home(self, number, at):
        reservation = self.occupancy.reservations.get(f"p{number}") if self.ready() else None
        if reservation is None:
            return
        inside = [each for each in relief.domains(self.machine, self.occupancy) if reservation.key in each.inside]
        wider = [NumaSet(), *(to for each in inside for to in relief.wider_sets(self.machine, self.occupancy, each))]
        out = replace(reservation, let_out=wider[at % len(wider)])
        self.settle_pools(self.occupancy.with_reservation(out))

    def settle_pools(self, occupancy):
        for container, cpus in pools.due(self.machine, occupancy):
            assert cpus
            assert not occupancy.allocations[container].stable
            occupancy = occupancy.with_allocation(replace(occupancy.allocations[container], cpus=cpus))
        assert pools.due(self.machine, occupancy) == ()
        self.occupancy = occupancy

    @invariant()
    def exclusive_cpus_are_in_nobody_elses_set(self):
        if not self.ready():
            return
        for allocation in self.occupancy.allocations.values():
            for other in self.occupancy.allocations.values():
                if allocation is not other:
                    assert allocation.exclusive.isdisjoint(other.cpus)

    @invariant()
    def who_is_kept_within_a_cache_has_there_what_was_requested(self):
        if not self.ready():
            return
        requested = {}
        for allocation in self.occupancy.allocations.values():
            reservation = self.occupancy.reservations[allocation.reservation]
            domain = reservation.cache_domain
            if domain and not allocation.exclusive and allocation.cpus <= domain:
                requested[allocation.cpus] = requested.get(allocation.cpus, 0) + reservation.demand.cpu_milli
        assert all(milli <= 1000 * len(cpus) for cpus, milli in requested.items())

    @invariant()
    def requests_of_the_shared_pool_are_kept(self):
        if not self.ready() or self.left_open:
            return
        load = self.occupancy.load(self.machine)
        for node in self.machine.numa_nodes:
            usable = node.cpus - self.occupancy.reserved
            row = load.rows.get(node.id)
            assert row is None or row.cpu <= 1000 * len(usable)


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=examples.of(120), stateful_step_count=25, deadline=None)


@st.composite
def large_machine(draw) -> Machine:
    """9 to 64 NUMA nodes, most with CPUs and little memory, some with CPUs alone, memory alone or nothing."""
    random, count = draw(st.randoms(use_true_random=False)), draw(st.sampled_from([9, 16, 17, 33, 64]))
    ids = sorted(random.sample(range(80), count))
    scarce, sizes = draw(st.sampled_from([(0, 1), (1, 2), (0, 4, 8)])), draw(st.sampled_from([(0, 1, 4), (8,)]))
    numa_nodes, first = [], 0
    for entry in ids:
        width = random.choice(sizes) or (0 if first else 1)
        distances = {other: 10 if other == entry else random.choice((11, 20, 32, 255)) for other in ids}
        cpus = CpuSet.of(range(first, first + width))
        numa_nodes.append(NumaNode(entry, cpus, random.choice(scarce) * machines.GIB, distances))
        first += width
    return Machine(tuple(numa_nodes))


@settings(max_examples=examples.of(150), deadline=None)
@given(large_machine(), st.lists(st.tuples(pod_options, kins), min_size=1, max_size=6), st.sampled_from([1, 3, 40]))
def test_the_laws_hold_on_up_to_64_numa_nodes_where_memory_is_scarce(machine, asked, times):
    """times: what each asks for in memory is so much more."""
    before = Occupancy()
    for at, (option, kin) in enumerate(asked):
        larger = {"memory": option["memory"] * times, "limit": option["limit"] and option["limit"] * times}
        before = check(machine, before, asks(f"p{at}", **(option | larger)), kin)
