"""Groups for pods that say `auto`: workloads of one namespace that talk more with each other than with its rest.

Each namespace is divided by what its workloads exchange with each other, and by nothing else: traffic from another
namespace joins, enlarges and changes no group there. So DNS, a collector of metrics or an ingress in a namespace of its
own joins no workloads either.

The measure is modularity: the share of all traffic inside groups, less what it would be if the same workloads talked
with each other at random. It is raised by moving single workloads, then merging whole groups, until nothing gains
(Blondel et al., 2008), beginning with the last partition, from which there must be reason to depart:

  - a workload leaves its group, and a group is merged into another, for a tenth of its traffic or more;
  - a group falls apart where hardly anything joins its parts any more;
  - all is divided anew, from single workloads, where that gains `PAYS` of all traffic over what the old groups became.

Where pods say by a label which application they are of, groups are found within each application likewise: a database
that several of a namespace share, and that is of none of them, does not join them.

Relays (numakin/placement/traffic/relays.py) join no workloads: what they exchange is left out, and each is then a
member of the group that it exchanges most with.

Groups that users named are taken as they are: their workloads stay, and an `auto` workload may join them. Same
arguments, same partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from hashlib import blake2b
from types import MappingProxyType

from extender.traffic.exchanged import Traffic, namespace_of
from extender.traffic.memberships import NO_GROUPS, Membership, Partition, membership
from numakin.placement.traffic.tenancy import SEPARATE

PAYS = 0.02
"""Modularity that a partition made from scratch must gain."""

LEAST = 0.1
"""Share of its traffic that a workload must exchange with its group to be called its member; to stay, half of that.
Else what talks with all (a scraper, a collector of logs) would be a member of whatever is the largest. A part of
a group that exchanges less than that half with the rest is a group of its own."""

STAYS = 0.1
"""Share of its traffic that a workload must gain to leave the group that it was in, or a group to be merged."""

ROUNDS = 32
"""Rounds over all workloads; a few are the rule."""

LONGEST_NAME = 63
"""Characters of a group's name."""


def partition(
    weights: Mapping[tuple[str, str], float],
    auto: Iterable[str],
    named: Mapping[str, str],
    previous: Partition = NO_GROUPS,
    relays: AbstractSet[str] = frozenset(),
    *,
    applications: Mapping[str, str] = MappingProxyType({}),
) -> Partition:
    """weights: of pairs of workloads (`Graph.weights`). auto: workloads to divide. named: those that declare their
    group, by workload. relays: those of either that pass on what they receive. applications: by workload the one that
    it is of, empty: of none; who is not in it may be of any.
    """
    pairs: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for pair, weight in SEPARATE.within(weights).items():
        if not applications or _of_one_application(pair, applications):
            pairs[namespace_of(pair[0])][pair] = weight
    to_divide: dict[str, set[str]] = defaultdict(set)
    for workload in auto:
        to_divide[namespace_of(workload)].add(workload)
    theirs: dict[str, dict[str, str]] = defaultdict(dict)
    for workload, group in named.items():
        theirs[namespace_of(workload)][workload] = group
    members: dict[str, Membership] = {}
    for namespace, workloads in sorted(to_divide.items()):
        members |= _of_one(pairs[namespace], workloads, theirs[namespace], previous, relays).members
    members |= {name: replace(members[name], application=applications[name]) for name in members.keys() & applications}
    return Partition(members)


def _of_one_application(pair: tuple[str, str], applications: Mapping[str, str]) -> bool:
    a, b = map(applications.get, pair)
    return a is None or b is None or a == b


def _of_one(
    weights: Mapping[tuple[str, str], float],
    auto: AbstractSet[str],
    named: Mapping[str, str],
    previous: Partition,
    relays: AbstractSet[str],
) -> Partition:
    """Finds the groups of one namespace."""
    everything = Traffic.among({*auto, *named}, weights)
    traffic = everything.without(relays)
    free = sorted(auto - named.keys() - relays)
    before = {workload: previous.members[workload].group for workload in free if workload in previous.members}
    alone = {workload: workload for workload in free}
    labels = climbed(traffic, alone | _parted(traffic, before), named, before)
    if before:
        anew = climbed(traffic, alone, named, {})
        if traffic.modularity({**anew, **named}) - traffic.modularity({**labels, **named}) > PAYS:
            labels = anew
    divided = _described(traffic, _titled(traffic, labels, named, before), named, before)
    passing = sorted((auto - named.keys()) & relays)
    return Partition({**divided.members, **_attached(everything, passing, divided, named, previous)})


def _attached(
    traffic: Traffic, relays: Iterable[str], divided: Partition, named: Mapping[str, str], previous: Partition
) -> dict[str, Membership]:
    """Each relay's membership of one of the groups that are there without it, where it exchanges enough with any; it
    stays where it was unless another has `STAYS` more.
    """
    groups = {**{workload: member.group for workload, member in divided.members.items()}, **named}
    members: dict[str, Membership] = {}
    for relay in relays:
        drawn: dict[str, float] = defaultdict(float)
        for peer, weight in traffic.peers[relay].items():
            if peer in groups:
                drawn[groups[peer]] += weight / traffic.strength[relay]
        before = previous.members[relay].group if relay in previous.members else ""
        group = max(drawn, key=lambda name: (drawn[name] + (STAYS if name == before else 0.0), name), default="")
        if group and drawn[group] >= (LEAST / 2 if group == before else LEAST):
            members[relay] = replace(membership(traffic, relay, {**groups, relay: group}), relay=True)
    return members


def _parted(traffic: Traffic, before: Mapping[str, str]) -> dict[str, str]:
    """The old labels, but for parts of groups that have nearly nothing to do with the rest of theirs."""
    relabelled = dict(before)
    members: dict[str, set[str]] = defaultdict(set)
    for workload, group in before.items():
        members[group].add(workload)
    for workloads in members.values():
        inside = traffic.within(workloads)
        labels = climbed(inside, {workload: workload for workload in sorted(workloads)}, {}, {})
        sums = inside.sums(labels)
        joined: dict[str, float] = defaultdict(float)
        for workload, label in labels.items():
            joined[label] += sum(weight for peer, weight in inside.peers[workload].items() if labels[peer] != label)
        heaviest = max(sums, key=lambda label: (sums[label], label))
        apart = {label for label in sums if label != heaviest and joined[label] <= LEAST / 2 * sums[label]}
        relabelled |= {workload: label for workload, label in labels.items() if label in apart}
    return relabelled


def _titled(
    traffic: Traffic, labels: Mapping[str, str], named: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str]:
    """With names that last: an old group's goes to the one with most of its traffic, a new group is called after its
    heaviest workload.
    """
    taken = set(named.values())
    titles = {label: label for label in taken}
    common: dict[tuple[str, str], float] = defaultdict(float)
    for workload, label in labels.items():
        if workload in before and label not in taken:
            common[before[workload], label] += traffic.strength[workload]
    for old, label in sorted(common, key=lambda pair: (-common[pair], pair)):
        if label not in titles and old not in taken:
            titles[label] = old
            taken.add(old)
    for workload in sorted(labels, key=lambda workload: (-traffic.strength[workload], workload)):
        if labels[workload] not in titles:
            titles[labels[workload]] = _title(workload, taken)
            taken.add(titles[labels[workload]])
    return {workload: titles[label] for workload, label in labels.items()}


def _title(workload: str, taken: set[str]) -> str:
    """NAMESPACE/auto-NAME of a workload; distinguished by a hash where that is too long or taken."""
    namespace, _, name = workload.partition("/")
    plain = f"auto-{name.rpartition('/')[2]}"
    if len(plain) > LONGEST_NAME or f"{namespace}/{plain}" in taken:
        tail = blake2b(workload.encode(), digest_size=4).hexdigest()
        plain = f"{plain[: LONGEST_NAME - len(tail) - 1]}-{tail}"
    return f"{namespace}/{plain}"


def _described(
    traffic: Traffic, labels: Mapping[str, str], named: Mapping[str, str], before: Mapping[str, str]
) -> Partition:
    """Without those that exchange too little with their group, nor those that then do."""
    everybody = {**labels, **named}
    while True:
        memberships = {label: membership(traffic, label, everybody) for label in labels if label in everybody}
        least = {
            workload: LEAST / 2 if before.get(workload) == memberships[workload].group else LEAST
            for workload in memberships
        }
        strangers = [workload for workload in memberships if memberships[workload].share < least[workload]]
        if not strangers:
            return Partition(memberships)
        for stranger in strangers:
            del everybody[stranger]


def climbed(
    traffic: Traffic, start: Mapping[str, str], named: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str]:
    """Labels by free workload, from which no move of a workload and no merger of groups gains."""
    labels = {**start, **named}
    theirs, old = set(named.values()), set(before.values())
    for _ in range(ROUNDS):
        moved = _moves(traffic, labels, list(start), before)
        if not (_merged(traffic, labels, theirs, old) or moved):
            break
    return {workload: labels[workload] for workload in start}


def _moves(traffic: Traffic, labels: dict[str, str], free: list[str], before: Mapping[str, str]) -> bool:
    """Moves workloads one by one, each to where it gains most; True when any has moved."""
    sums = traffic.sums(labels)
    changed = False
    for _ in range(ROUNDS):
        moved = False
        for workload in free:
            own = labels[workload]
            best = _best(workload, traffic, labels, sums, least=STAYS if before.get(workload) == own else 1e-9)
            if best != own:
                sums[own] -= traffic.strength[workload]
                sums[best] += traffic.strength[workload]
                labels[workload] = best
                moved = changed = True
        if not moved:
            break
    return changed


def _best(
    workload: str, traffic: Traffic, labels: Mapping[str, str], sums: Mapping[str, float], *, least: float
) -> str:
    """The label under which the workload has most over what chance would give it, as a share of its own traffic; its
    own label unless another has `least` more.
    """
    own, strength = labels[workload], traffic.strength[workload]
    if not strength:
        return own
    drawn: dict[str, float] = defaultdict(float, {own: 0.0, workload: 0.0})
    for peer, weight in traffic.peers[workload].items():
        drawn[labels[peer]] += weight
    merit = {
        label: weight / strength - (sums.get(label, 0.0) - (strength if label == own else 0.0)) / traffic.total
        for label, weight in drawn.items()
    }
    best = min(merit, key=lambda label: (-round(merit[label], 12), label))
    return best if merit[best] - merit[own] > least else own


def _merged(traffic: Traffic, labels: dict[str, str], theirs: set[str], old: set[str]) -> bool:
    """Joins groups that gain by it, but never two of the users' own; True when any were joined."""
    sums = traffic.sums(labels)
    between: dict[tuple[str, str], float] = defaultdict(float)
    for workload, peers in traffic.peers.items():
        for peer, weight in peers.items():
            if labels[workload] < labels[peer]:
                between[labels[workload], labels[peer]] += weight
    gains = {pair: weight - sums[pair[0]] * sums[pair[1]] / traffic.total for pair, weight in between.items()}
    into: dict[str, str] = {}
    for pair in sorted(gains, key=lambda pair: (-gains[pair], pair)):
        # What else would gain is weighed anew in the next round.
        if {*pair} & {*into, *into.values()} or {*pair} <= theirs:
            continue
        least = STAYS * min(sums[label] for label in pair) if {*pair} <= theirs | old else 1e-9 * traffic.total
        if gains[pair] > least:
            target, source = sorted(
                pair, key=lambda label: (label not in theirs, label not in old, -sums[label], label)
            )
            into[source] = target
    for workload, label in labels.items():
        labels[workload] = into.get(label, label)
    return bool(into)
