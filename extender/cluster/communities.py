"""Groups for pods that say `auto`: workloads that talk more with each other than with the rest.

The measure is modularity: the share of all traffic inside groups, less what it would be if the same workloads talked
with each other at random. It is raised by moving single workloads, then merging whole groups, until nothing gains
(Blondel et al., 2008), beginning with the last partition, from which there must be reason to depart:

  - a workload leaves its group, and a group is merged into another, for a tenth of its traffic or more;
  - a group falls apart where hardly anything joins its parts any more;
  - all is divided anew, from single workloads, where that gains `PAYS` of all traffic over what the old groups became.

Groups that users named are taken as they are: their workloads stay, and an `auto` workload may join them. Same
arguments, same partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

STAYS = 0.1
"""Share of its traffic that a workload must gain to leave the group that it was in, or a group to be merged."""

PAYS = 0.02
"""Modularity that a partition made from scratch must gain."""

LEAST = 0.1
"""Share of its traffic that a workload must exchange with its group to be called its member; to stay, half of that.
Else what talks with everybody (a scraper, a collector of logs) would be a member of whatever is the largest. A part of
a group that exchanges less than that half with the rest is a group of its own."""

ROUNDS = 32
"""Rounds over all workloads; a few are the rule."""

NAMED = 3
"""Partners that a reason names."""

LONGEST_NAME = 63
"""Characters of a group's name."""


@dataclass(frozen=True, slots=True)
class _Traffic:
    """Weights by workload and peer, both ways; strength: of a workload with all peers; total: of all workloads."""

    peers: Mapping[str, Mapping[str, float]]
    strength: Mapping[str, float]
    total: float

    @classmethod
    def among(cls, workloads: set[str], weights: Mapping[tuple[str, str], float]) -> _Traffic:
        """Only traffic between different workloads joins them."""
        peers: dict[str, dict[str, float]] = {one: {} for one in sorted(workloads)}
        for (one, other), weight in sorted(weights.items()):
            if one != other and weight > 0 and one in peers and other in peers:
                peers[one][other] = peers[other][one] = weight
        return cls.of(peers)

    @classmethod
    def of(cls, peers: Mapping[str, Mapping[str, float]]) -> _Traffic:
        strength = {one: sum(found.values()) for one, found in peers.items()}
        return cls(peers, strength, sum(strength.values()))

    def within(self, workloads: set[str]) -> _Traffic:
        """As if there were only these."""
        return self.of(
            {
                one: {peer: weight for peer, weight in self.peers[one].items() if peer in workloads}
                for one in sorted(workloads)
            }
        )

    def sums(self, labels: Mapping[str, str]) -> dict[str, float]:
        """Strength by label."""
        found: dict[str, float] = defaultdict(float)
        for one, label in labels.items():
            found[label] += self.strength[one]
        return found

    def modularity(self, labels: Mapping[str, str]) -> float:
        if not self.total:
            return 0.0
        inside = sum(
            weight
            for one, found in self.peers.items()
            for other, weight in found.items()
            if labels[one] == labels[other]
        )
        return inside / self.total - sum((one / self.total) ** 2 for one in self.sums(labels).values())


@dataclass(frozen=True, slots=True)
class Membership:
    """group: NAMESPACE/name. share: of the workload's traffic with other opted-in workloads, what stays in the group.
    partners: those of it that it talks with most; size: how many of it it talks with.
    """

    group: str
    share: float
    partners: tuple[str, ...] = ()
    size: int = 0

    @property
    def reason(self) -> str:
        names = ", ".join(one.rpartition("/")[2] for one in self.partners)
        more = f" and {self.size - len(self.partners)} more" if self.size > len(self.partners) else ""
        return f"exchanges {round(100 * self.share)} % of its traffic with {names}{more}"


@dataclass(frozen=True, slots=True)
class Partition:
    """Memberships by workload; a workload on its own has none. modularity: of what was divided, -0.5 to 1."""

    members: Mapping[str, Membership] = field(default_factory=dict)
    modularity: float = 0.0

    def groups(self) -> dict[str, list[str]]:
        """Workloads by group, both in ascending order."""
        found: dict[str, list[str]] = defaultdict(list)
        for workload in sorted(self.members):
            found[self.members[workload].group].append(workload)
        return dict(sorted(found.items()))


NOBODY = Partition()


def partition(
    weights: Mapping[tuple[str, str], float],
    auto: Iterable[str],
    named: Mapping[str, str],
    previous: Partition = NOBODY,
) -> Partition:
    """weights: of pairs of workloads (`Graph.weights`). auto: workloads to divide. named: those that say their group,
    by workload.
    """
    free = sorted(set(auto) - named.keys())
    traffic = _Traffic.among({*free, *named}, weights)
    before = {one: previous.members[one].group for one in free if one in previous.members}
    alone = {one: one for one in free}
    labels = _climbed(traffic, alone | _parted(traffic, before), named, before)
    if before:
        anew = _climbed(traffic, alone, named, {})
        if traffic.modularity({**anew, **named}) - traffic.modularity({**labels, **named}) > PAYS:
            labels = anew
    return _described(traffic, _titled(traffic, labels, named, before), named, before)


def _parted(traffic: _Traffic, before: Mapping[str, str]) -> dict[str, str]:
    """The old labels, but for parts of groups that have nearly nothing to do with the rest of theirs."""
    found = dict(before)
    members: dict[str, set[str]] = defaultdict(set)
    for one, group in before.items():
        members[group].add(one)
    for workloads in members.values():
        inside = traffic.within(workloads)
        labels = _climbed(inside, {one: one for one in sorted(workloads)}, {}, {})
        sums = inside.sums(labels)
        joined: dict[str, float] = defaultdict(float)
        for one, label in labels.items():
            joined[label] += sum(weight for peer, weight in inside.peers[one].items() if labels[peer] != label)
        heaviest = max(sums, key=lambda label: (sums[label], label))
        apart = {label for label in sums if label != heaviest and joined[label] <= LEAST / 2 * sums[label]}
        found |= {one: label for one, label in labels.items() if label in apart}
    return found


def _climbed(
    traffic: _Traffic, start: Mapping[str, str], named: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str]:
    """Labels by free workload, from which no move of a workload and no merger of groups gains."""
    labels = {**start, **named}
    theirs, old = set(named.values()), set(before.values())
    for _ in range(ROUNDS):
        moved = _moves(traffic, labels, list(start), before)
        if not (_merged(traffic, labels, theirs, old) or moved):
            break
    return {one: labels[one] for one in start}


def _moves(traffic: _Traffic, labels: dict[str, str], free: list[str], before: Mapping[str, str]) -> bool:
    """Moves workloads one by one, each to where it gains most; True when any has moved."""
    sums = traffic.sums(labels)
    changed = False
    for _ in range(ROUNDS):
        moved = False
        for one in free:
            mine = labels[one]
            best = _best(one, traffic, labels, sums, least=STAYS if before.get(one) == mine else 1e-9)
            if best != mine:
                sums[mine] -= traffic.strength[one]
                sums[best] += traffic.strength[one]
                labels[one] = best
                moved = changed = True
        if not moved:
            break
    return changed


def _best(one: str, traffic: _Traffic, labels: Mapping[str, str], sums: Mapping[str, float], *, least: float) -> str:
    """The label under which the workload has most over what chance would give it, as a share of its own traffic; its
    own label unless another has `least` more.
    """
    mine, strength = labels[one], traffic.strength[one]
    if not strength:
        return mine
    drawn: dict[str, float] = defaultdict(float, {mine: 0.0, one: 0.0})
    for peer, weight in traffic.peers[one].items():
        drawn[labels[peer]] += weight
    merit = {
        label: weight / strength - (sums.get(label, 0.0) - (strength if label == mine else 0.0)) / traffic.total
        for label, weight in drawn.items()
    }
    best = min(merit, key=lambda label: (-round(merit[label], 12), label))
    return best if merit[best] - merit[mine] > least else mine


def _merged(traffic: _Traffic, labels: dict[str, str], theirs: set[str], old: set[str]) -> bool:
    """Joins groups that gain by it, but never two of the users' own; True when any were joined."""
    sums = traffic.sums(labels)
    between: dict[tuple[str, str], float] = defaultdict(float)
    for one, peers in traffic.peers.items():
        for other, weight in peers.items():
            if labels[one] < labels[other]:
                between[labels[one], labels[other]] += weight
    gains = {pair: weight - sums[pair[0]] * sums[pair[1]] / traffic.total for pair, weight in between.items()}
    into: dict[str, str] = {}
    for pair in sorted(gains, key=lambda pair: (-gains[pair], pair)):
        # What else would gain is weighed anew in the next round.
        if {*pair} & {*into, *into.values()} or {*pair} <= theirs:
            continue
        least = STAYS * min(sums[one] for one in pair) if {*pair} <= theirs | old else 1e-9 * traffic.total
        if gains[pair] > least:
            target, source = sorted(pair, key=lambda one: (one not in theirs, one not in old, -sums[one], one))
            into[source] = target
    for one, label in labels.items():
        labels[one] = into.get(label, label)
    return bool(into)


def _titled(
    traffic: _Traffic, labels: Mapping[str, str], named: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str]:
    """With names that last: an old group's goes to whoever has most of its traffic, a new group is called after its
    heaviest workload.
    """
    taken = set(named.values())
    titles = {label: label for label in taken}
    common: dict[tuple[str, str], float] = defaultdict(float)
    for one, label in labels.items():
        if one in before and label not in taken:
            common[before[one], label] += traffic.strength[one]
    for old, label in sorted(common, key=lambda pair: (-common[pair], pair)):
        if label not in titles and old not in taken:
            titles[label] = old
            taken.add(old)
    for one in sorted(labels, key=lambda one: (-traffic.strength[one], one)):
        if labels[one] not in titles:
            titles[labels[one]] = _title(one, taken)
            taken.add(titles[labels[one]])
    return {one: titles[label] for one, label in labels.items()}


def _title(workload: str, taken: set[str]) -> str:
    """NAMESPACE/auto-NAME of a workload; told apart by a hash where that is too long or taken."""
    namespace, _, name = workload.partition("/")
    plain = f"auto-{name.rpartition('/')[2]}"
    if len(plain) > LONGEST_NAME or f"{namespace}/{plain}" in taken:
        tail = blake2b(workload.encode(), digest_size=4).hexdigest()
        plain = f"{plain[: LONGEST_NAME - len(tail) - 1]}-{tail}"
    return f"{namespace}/{plain}"


def _described(
    traffic: _Traffic, labels: Mapping[str, str], named: Mapping[str, str], before: Mapping[str, str]
) -> Partition:
    """Without those that exchange too little with their group, nor those that then do."""
    everybody = {**labels, **named}
    modularity = traffic.modularity(everybody)
    while True:
        found = {one: _membership(traffic, one, everybody) for one in labels if one in everybody}
        least = {one: LEAST / 2 if before.get(one) == found[one].group else LEAST for one in found}
        strangers = [one for one in found if found[one].share < least[one]]
        if not strangers:
            return Partition(found, modularity)
        for one in strangers:
            del everybody[one]


def _membership(traffic: _Traffic, one: str, groups: Mapping[str, str]) -> Membership:
    inside = {peer: weight for peer, weight in traffic.peers[one].items() if groups.get(peer) == groups[one]}
    share = sum(inside.values()) / (traffic.strength[one] or 1.0)
    heaviest = sorted(inside, key=lambda peer: (-inside[peer], peer))
    return Membership(groups[one], share, tuple(heaviest[:NAMED]), len(inside))
