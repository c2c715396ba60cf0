"""Known systems side by side, with hubs planted among them: how well `auto` finds the groups all the same.

    python -m benchmarks.quality.hubs

Six systems with their published call graphs, each under a load of its own: each in a namespace of its own, as the hubs
are; all in one namespace, with the hubs; and there with labels that say which system a workload is of, where a hub is
of one of its own. Precision and recall are of pairs of workloads: those in one group with the hubs there, against those
in one group without them. Steady is the share of workloads that keep their group, or stay without, through ten more
windows of the same rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random
from statistics import median
from types import MappingProxyType

from benchmarks.graphs.app import App
from benchmarks.quality.scenario import CALLS_PER_S, GRAPHS, Pair
from extender.traffic.communities import partition
from extender.traffic.memberships import Partition
from numakin.placement.traffic.graph import Amount, Costs

HUBS = ("dns", "metrics", "ingress", "database", "proxy")
"""dns: every workload spends up to a seventh on it. metrics: every workload is scraped alike. ingress: calls each front
end as often as users do. database: a quarter of each system's workloads use it much. proxy: a fifth of them talk
through it."""

APART, TOGETHER = "each in a namespace of its own", "all in one namespace"
LABELLED = f"{TOGETHER}, with labels"

SYSTEMS = 6
SEEDS = 20
WINDOWS = 10
NOISE = 0.1
"""By which the weight of a pair in one window differs from its rate's, either way, at the most."""
PAGE = 2000
"""Bytes of a user's request and its answer."""

_COSTS = Costs()


def planted(seed: int, kinds: Sequence[str] = HUBS, *, together: bool = False) -> dict[Pair, float]:
    """Weights between workloads. Same seed, same systems, whatever the hubs. together: all in one namespace."""
    weights = _apart(seed, kinds)
    if not together:
        return weights
    return {(_in_one(a), _in_one(b)): weight for (a, b), weight in weights.items()}


def _apart(seed: int, kinds: Sequence[str]) -> dict[Pair, float]:
    random = Random(f"hubs/{seed}")
    known = [source for source in GRAPHS.values() if isinstance(source, App)]
    systems = [(f"ns{n}", random.choice(known), CALLS_PER_S * random.lognormvariate(0, 0.7)) for n in range(SYSTEMS)]
    weights: dict[Pair, float] = {}
    for namespace, app, users in systems:
        for call in app.calls:
            rate = Amount(call.size * call.calls * users / 100, 2 * call.calls * users / 100)
            _add(weights, _name(namespace, call.source), _name(namespace, call.target), _COSTS.weight("tcp", rate))
    strength = _strength(weights)
    usual = median(strength.values())
    for kind in kinds:
        lots, hub = Random(f"hubs/{seed}/{kind}"), _name(kind, kind)
        for namespace, app, users in systems:
            mine = sorted(workload for workload in strength if workload.startswith(f"{namespace}/"))
            if kind == "dns":
                for workload in mine:
                    _add(weights, hub, workload, strength[workload] * lots.uniform(0.01, 0.15))
            elif kind == "metrics":
                for workload in mine:
                    _add(weights, hub, workload, strength[workload] * lots.uniform(0.02, 0.1) + 0.05 * usual)
            elif kind == "ingress":
                cost = _COSTS.weight("tcp", Amount(PAGE * users, 2 * users))
                _add(weights, hub, _name(namespace, _front(app)), cost * lots.uniform(0.7, 1.5))
            else:
                part, least, most = (4, 0.2, 0.8) if kind == "database" else (5, 0.1, 0.5)
                for workload in lots.sample(mine, max(1, len(mine) // part)):
                    _add(weights, hub, workload, strength[workload] * lots.uniform(least, most))
    return weights


def resampled(weights: Mapping[Pair, float], seed: int) -> dict[Pair, float]:
    """Another window of the same rates."""
    lots = Random(f"window/{seed}")
    return {pair: weight * lots.uniform(1 - NOISE, 1 + NOISE) for pair, weight in sorted(weights.items())}


def labelled(weights: Mapping[Pair, float]) -> dict[str, str]:
    """By workload of the one namespace the system that it is of; a hub is one of its own."""
    return {end: end.rpartition("/")[2].partition("-")[0] for pair in weights for end in pair}


def steady(weights: Mapping[Pair, float], applications: Mapping[str, str] = MappingProxyType({})) -> float:
    """Share of the workloads that keep their group, or stay without, through `WINDOWS` more windows."""
    workloads = {end for pair in weights for end in pair}
    first = last = partition(weights, workloads, {}, applications=applications)
    moved: set[str] = set()
    for window in range(WINDOWS):
        last = partition(resampled(weights, window), workloads, {}, last, applications=applications)
        moved |= {name for name in workloads if _group(last, name) != _group(first, name)}
    return 1 - len(moved) / len(workloads)


def _group(found: Partition, workload: str) -> str:
    return found.members[workload].group if workload in found.members else ""


def agreement(
    with_hubs: Mapping[Pair, float],
    without: Mapping[Pair, float],
    applications: Mapping[str, str] = MappingProxyType({}),
) -> tuple[float, float]:
    """Precision and recall of pairs of workloads in one group. applications: as `labelled`, of those with the hubs."""
    workloads = sorted({end for pair in without for end in pair})
    grouped, true = _groups(with_hubs, applications), _groups(without, {})
    same = [(grouped[a] == grouped[b], true[a] == true[b]) for a, b in combinations(workloads, 2)]
    both = sum(here and there for here, there in same)
    here, there = sum(pair[0] for pair in same), sum(pair[1] for pair in same)
    return both / here if here else 1.0, both / there if there else 1.0


def _groups(weights: Mapping[Pair, float], applications: Mapping[str, str]) -> dict[str, str]:
    """The group of each workload; one without any is its own."""
    workloads = {end for pair in weights for end in pair}
    members = partition(weights, workloads, {}, applications=applications).members
    return {workload: members[workload].group if workload in members else workload for workload in workloads}


def _in_one(workload: str) -> str:
    namespace, kind, name = workload.split("/")
    return f"one/{kind}/{namespace}-{name}"


def _front(app: App) -> str:
    """Whom users call: the first that nobody calls."""
    called = {call.target for call in app.calls}
    return next((call.source for call in app.calls if call.source not in called), app.calls[0].source)


def _name(namespace: str, service: str) -> str:
    return f"{namespace}/Deployment/{service}"


def _add(weights: dict[Pair, float], a: str, b: str, weight: float) -> None:
    if a != b:
        pair = min(a, b), max(a, b)
        weights[pair] = weights.get(pair, 0.0) + weight


def _strength(weights: Mapping[Pair, float]) -> dict[str, float]:
    strength: dict[str, float] = {}
    for pair, weight in weights.items():
        for end in pair:
            strength[end] = strength.get(end, 0.0) + weight
    return strength


def main() -> None:
    columns = ("precision", "recall", "steady")
    for where in (APART, TOGETHER, LABELLED):
        print(f"\n{where}")
        print(f"{'':12}" + "".join(f"{name:>18}" for name in columns))
        print(f"{'':12}" + f"{'median':>9}{'worst':>9}" * len(columns))
        for kinds in [*((kind,) for kind in HUBS), HUBS]:
            rows = [_row(seed, kinds, where) for seed in range(SEEDS)]
            name = kinds[0] if len(kinds) == 1 else "all"
            print(
                f"{name:12}" + "".join(f"{median(column):9.3f}{min(column):9.3f}" for column in zip(*rows, strict=True))
            )


def _row(seed: int, kinds: Sequence[str], where: str) -> tuple[float, float, float]:
    together = where is not APART
    with_hubs = planted(seed, kinds, together=together)
    applications = labelled(with_hubs) if where is LABELLED else {}
    return *agreement(with_hubs, planted(seed, (), together=together), applications), steady(with_hubs, applications)


if __name__ == "__main__":
    main()
