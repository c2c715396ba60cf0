"""What must hold after each step of a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from numakin.placement.decide import memory
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import cpu_of
from numakin.placement.optin.quotas import UNLIMITED
from numakin.placement.state import pools
from tests.enforcer.history.truth import NAMESPACES, Truth

Law = Callable[[Truth], None]


def what_the_ledger_says_is_in_the_cgroups(truth: Truth) -> None:
    machine, occupancy = truth.node.machine, truth.node.agent.occupancy
    for key, living in truth.live.items():
        allocation = occupancy.allocations.get(key)
        if living.uncertain or living.limit is not None or key in truth.node.behind or key in truth.unheard():
            continue
        if living.foreign is not None:
            there = (living.foreign & machine.all_cpus) or machine.all_cpus
            assert truth.node.cpus(key) == there, f"{key} is another owner's"
        elif truth.released and living.opted_in:
            assert truth.node.cpus(key) == machine.all_cpus, f"{key} was released"
        elif living.opted_in or occupancy.rules.everyone:
            said = (allocation.cpus if allocation is not None else CpuSet()) or machine.all_cpus
            assert truth.node.cpus(key) == said, f"{key} is on CPUs {truth.node.cpus(key)}, said to be on {said}"
        else:
            assert truth.node.cpus(key) == machine.all_cpus, f"{key} has not opted in"


def memory_is_what_the_ledger_says(truth: Truth) -> None:
    """Bound to what it was bound to; else open, whoever opened it, and when."""
    machine, occupancy, starting = truth.node.machine, truth.node.agent.occupancy, truth.starting()
    for key, living in truth.live.items():
        allocation = occupancy.allocations.get(key)
        if living.uncertain or key in truth.node.behind or key in truth.unheard():
            continue
        if living.limit is not None and key in starting:
            continue  # narrowed at its start
        ours = living.opted_in and living.foreign is None and not truth.released
        bound = ours and allocation is not None and not allocation.externally_managed
        said = (allocation.mems if bound else NumaSet()) or machine.all_mems
        assert truth.node.mems(key) == said, f"{key} has memory on {truth.node.mems(key)}, said to be on {said}"


def who_is_bound_has_memory_for_all_that_it_may_use(truth: Truth) -> None:
    """Where it asks for more it is opened."""
    machine, allocations = truth.node.machine, truth.node.agent.occupancy.allocations
    for key, living in truth.live.items():
        bound = allocations[key].mems if key in allocations and living.ours else NumaSet()
        if bound and key not in truth.unheard():
            may_use = truth.node.running[key][1].linux.resources.memory.limit.value
            there = sum(memory.capacity(machine, node) for node in bound)
            assert may_use <= there, f"{key} may use {may_use >> 30} GiB, and NUMA nodes {bound} have {there >> 30}"


def each_is_known_and_nobody_else_is(truth: Truth) -> None:
    allocations = truth.node.agent.occupancy.allocations
    assert truth.released or truth.live.keys() - truth.unheard() <= allocations.keys(), "one that runs is not known"
    gone = allocations.keys() - truth.live.keys() - truth.failed.attempts.keys()
    assert not gone, f"{gone} are gone and hold CPUs"
    for key, living in truth.live.items():
        if living.ours and not truth.released and key in allocations:
            known = allocations[key]
            assert not known.externally_managed, f"{key} is disowned"
            assert known.reservation != key, f"{key} is taken for one that has not opted in"
    pods_with_room = {reservation.pod for reservation in truth.node.agent.occupancy.reservations.values()}
    assert pods_with_room <= truth.pods.keys(), "a pod that is gone holds room"


def no_fault_of_ours_was_met(truth: Truth) -> None:
    assert not truth.node.agent.records.counts["failed"], "see the log"


def exclusive_is_exclusive(truth: Truth) -> None:
    if truth.released:
        return
    everyone = truth.node.rules.everyone
    for key, own in truth.said.items():
        for other, living in truth.live.items():
            can_be_set = living.ours or (everyone and not living.anothers and not living.opted_in)
            if (
                living.pod.uid in truth.budgets.keys() | truth.not_listed
                and truth.said.get(other) == own
                and truth.of_one_pod(key, other)
            ):
                continue
            if other != key and can_be_set and other not in truth.node.behind | truth.unheard():
                there = truth.node.cpus(other)
                assert own.isdisjoint(there), f"{key} has {own} for itself, and {other} runs on {there}"


def no_namespace_is_over_its_quota(truth: Truth) -> None:
    """Its own, else the node's. Who had more when an operator set a lower one gets no more."""
    for namespace in NAMESPACES:
        own = truth.own_of(namespace, truth.said)
        count, quota = sum(map(len, own)), truth.quotas.get(namespace, UNLIMITED).exclusive_cpus
        limit = truth.limit if quota is None else quota
        if limit is not None:
            assert count <= max(limit, truth.had[namespace]), f"{namespace} has {own}, and may have {limit}"
        truth.had[namespace] = count


def no_pod_has_more_than_its_budget(truth: Truth) -> None:
    for uid, budget in truth.budgets.items():
        keys = [key for key in truth.said if truth.live[key].pod.uid == uid]
        own = {truth.said[key] for key in keys}
        whole_cores = any(truth.live[key].wish("cpus") == "exclusive-cores" for key in keys)
        core = truth.node.machine.cores_by_node[truth.node.machine.cpu_nodes.lowest][0].bit_count()
        most = budget.cpus + (len(own) * (core - 1) if whole_cores else 0)
        assert sum(map(len, own)) <= most, f"{uid} has {[*map(str, own)]} of a budget of {budget.cpus} CPUs"


def who_is_narrowed_stays_within_the_other_owners_cpus(truth: Truth) -> None:
    """And has a home there, or all of them. Whose home's CPUs have all gone has all CPUs by the kernel, until the runtime
    may be told of its next home.
    """
    allocations = truth.node.agent.occupancy.allocations
    for key, living in truth.live.items():
        if living.limit is None or living.uncertain:
            continue
        now, everything = truth.node.cpus(key), truth.node.machine.all_cpus
        waits = key in truth.node.behind and truth.node.set_to(key).isdisjoint(everything)
        assert now <= living.limit or living.limit.isdisjoint(everything) or waits, (
            f"{key} is on CPUs {now}, and another owner gave it {living.limit}"
        )
        if key in truth.node.behind or key in truth.starting() or truth.node.machine is not truth.whole:
            continue
        left = truth.released or allocations[key].externally_managed
        said = living.limit if left else allocations[key].cpus
        assert now == said, f"{key} is on CPUs {now}, said to be on {said}"


def who_has_cpus_of_its_own_has_as_many_as_it_asks_for(truth: Truth) -> None:
    for key, own in truth.said.items():
        living, machine = truth.live[key], truth.node.machine
        if living.unseen or not living.ours or living.pod.uid in truth.budgets:
            continue
        shares = truth.node.running[key][1].linux.resources.cpu.shares.value
        core = machine.cores_by_node[machine.cpu_nodes.lowest][0].bit_count()
        unit = core if living.wish("cpus") == "exclusive-cores" else 1
        asked = -(-shares // (1024 * unit)) * unit
        assert len(own) == asked, f"{key} has CPUs {own} and asks for {shares / 1024:g}"
        known = truth.node.agent.occupancy.allocations[key].rounded_up
        assert known == 1000 * len(own) - cpu_of(shares), f"{key} has {known} millicores more than it asks for"


def who_has_cpus_has_those_that_are_meant(truth: Truth) -> None:
    """Its own; else those of the whole pool of its NUMA nodes, or of those it is let out to, or of its cache; else all
    that are nobody's.
    """
    if truth.released:
        return
    node, occupancy = truth.node.machine, truth.node.agent.occupancy
    for key, living in truth.live.items():
        allocation = occupancy.allocations.get(key)
        if not living.ours or allocation is None or not allocation.cpus or allocation.exclusive:
            continue
        reservation = occupancy.reservations[allocation.reservation]
        if allocation.open:
            assert allocation.cpus == pools.left_open(node, occupancy)
            continue
        assert living.wish("policy") != "none"
        if allocation.stable:
            assert allocation.cpus <= node.cpus_of(reservation.numa_nodes) - occupancy.exclusive
            assert allocation.cpus == truth.stable.get(key, allocation.cpus), f"{key} was to keep {truth.stable[key]}"
            continue
        pool = pools.shared(node, occupancy, reservation.let_out or reservation.numa_nodes)
        assert allocation.cpus in (pool, pool & reservation.cache_domain)


def what_is_given_is_there(truth: Truth) -> None:
    node, occupancy = truth.node.machine, truth.node.agent.occupancy
    for key, living in truth.live.items():
        allocation = occupancy.allocations.get(key)
        if living.ours and allocation is not None:
            assert allocation.cpus <= node.all_cpus, f"{key} has CPUs {allocation.cpus - node.all_cpus}, which are gone"
            assert allocation.mems <= node.all_mems, f"{key} has memory on {allocation.mems - node.all_mems}, gone"
    for reservation in occupancy.reservations.values():
        there = node.cpu_nodes | node.all_mems
        assert reservation.numa_nodes | reservation.let_out <= there, f"{reservation.key} is where nothing is"


def who_must_not_be_moved_is_not_let_out(truth: Truth) -> None:
    occupancy = truth.node.agent.occupancy
    for key, living in truth.live.items():
        allocation = occupancy.allocations.get(key)
        if living.ours and allocation is not None:
            stable = living.wish("cpus") == "shared-stable" and truth.may_ask_for(living.pod.namespace, "cpus")
            stays = living.wish("move") == "never" or living.wish("policy") or stable or allocation.stable
            reservation = occupancy.reservations[allocation.reservation]
            assert not (stays and reservation.let_out), f"{key} is let out to NUMA nodes {reservation.let_out}"


def free_devices_are_as_many_as_the_kubelet_says(truth: Truth) -> None:
    node, told = truth.node.machine, dict[str, int]()
    for (resource, mask), free in truth.node.agent.occupancy.live.devices.items():
        assert not mask & ~(node.cpu_nodes | node.all_mems).mask, "devices near to NUMA nodes that are not there"
        told[resource] = told.get(resource, 0) + free
    assert +Counter(told) == +Counter(truth.devices)


def whole_cores_are_whole(truth: Truth) -> None:
    for key, own in truth.said.items():
        if truth.live[key].ours and truth.live[key].wish("cpus") == "exclusive-cores":
            cores = [truth.node.machine.core_of(cpu) for cpu in own]
            assert all(core <= own for core in cores), f"{key} has CPUs {own}, which are no whole cores"


def little_is_moved_of_who_runs(truth: Truth) -> None:
    """The runtime waits for the kernel. Of who is moved to its kin, memory and all, the observer says how much."""
    for key, moved in truth.node.moved.items():
        living = truth.live.get(key)
        follows = living is not None and living.wish("move") == "cpus-and-memory"
        if living is not None and not (follows and living.pod.uid in truth.offered):
            most = (16 << 30) if follows else (256 << 20)
            assert moved <= most, f"{moved >> 20} MiB of {key} were moved for an update"


def _while_told(law: Law) -> Law:
    """Holds while the enforcer is there and the runtime has it."""

    def looked_at(truth: Truth) -> None:
        if truth.node.attached:
            law(truth)

    return looked_at


LAWS: tuple[Law, ...] = tuple(
    _while_told(law)
    for law in (
        what_the_ledger_says_is_in_the_cgroups,
        memory_is_what_the_ledger_says,
        who_is_bound_has_memory_for_all_that_it_may_use,
        little_is_moved_of_who_runs,
        each_is_known_and_nobody_else_is,
        no_fault_of_ours_was_met,
        exclusive_is_exclusive,
        no_namespace_is_over_its_quota,
        no_pod_has_more_than_its_budget,
        who_is_narrowed_stays_within_the_other_owners_cpus,
        who_has_cpus_of_its_own_has_as_many_as_it_asks_for,
        who_has_cpus_has_those_that_are_meant,
        whole_cores_are_whole,
        what_is_given_is_there,
        who_must_not_be_moved_is_not_let_out,
        free_devices_are_as_many_as_the_kubelet_says,
    )
)
