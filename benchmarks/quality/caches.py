"""python -m benchmarks.quality.caches: how much of what members exchange stays inside one last-level cache, where they
ask for that: as they came, by their groups' annotation alone, and after ten minutes of moves.

One NUMA node of Rome and of Milan with Online Boutiques side by side, in random order; decide(), the observer's search
for moves and the hook's judgement of each are the real ones. Traffic is known exactly from the first window on.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from random import Random
from statistics import median
from typing import NamedTuple

from benchmarks.graphs.online_boutique import ONLINE_BOUTIQUE
from enforcer.observer.moves.candidates import Allowance, Rested, offer_of, steps_of
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from lab.standins.machines import MACHINES
from numakin.placement.decide.decide import decide
from numakin.placement.decide.relocation import Moved, Mover, moved
from numakin.placement.decide.request import Kin, Request
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Move, Span
from numakin.placement.optin.parsing import OptIn
from numakin.placement.plan.partition import PartitionProblem
from numakin.placement.plan.search import solve
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import local_pb2 as local

WINDOWS = 60
"""Of ten seconds each."""

WEIGHT = 1e4
"""Of a pair of pods, for one call in a hundred requests: far over the least that a move must gain."""

Talk = Mapping[tuple[str, str], float]


class Outcome(NamedTuple):
    """Shares of all traffic inside one cache; moves: for each pod."""

    came: float
    moved: float
    best: float
    moves: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.caches", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the first of five lives each")
    seed: int = parser.parse_args().seed
    print("one NUMA node of  requested  as they came  after moves  best found  moves for each pod  (medians, worst)")
    for name in ("epyc-7742-nps1", "epyc-7763-nps1"):
        for fill in (0.35, 0.7):
            lives = [life(MACHINES[name].machine, fill, Random(seed + number)) for number in range(5)]
            shares = "  ".join(
                f"{median(share):.3f} ({min(share):.3f})" for share in list(zip(*lives, strict=True))[:3]
            )
            most = max(outcome.moves for outcome in lives)
            print(f"{name:16}  {fill:.0%}        {shares}  {most:.2f}", flush=True)


def life(machine: Machine, fill: float, random: Random) -> Outcome:
    """fill: share of the NUMA node's CPUs that are requested."""
    requests, talk = _shops(machine, fill, random)
    occupancy = Occupancy().on(machine)
    for request in requests.values():
        occupancy = decide(machine, occupancy, request, Kin(expected=NumaSet(1))).applied(occupancy, request)
    came, best = _inside(occupancy, talk), _best(machine, occupancy, talk)
    rested, allowance, count = Rested(), Allowance(int(Config().move_budget)), 0
    for _ in range(WINDOWS):
        movable = rested.movable(occupancy, dict.fromkeys(requests, Move.CPUS), {})
        situation = PlanningInput(occupancy, [], {}, talk, movable)
        offer = offer_of(steps_of(machine, situation, allowance.now()), situation)
        for step in offer.steps:
            outcome = moved(machine, occupancy, [_mover(way, requests) for way in step.ways])
            if isinstance(outcome, Moved):
                occupancy, count = outcome.occupancy, count + len(step.ways)
                allowance.used(len(step.ways))
    return Outcome(came, _inside(occupancy, talk), best, count / len(requests))


def _mover(way: local.Moves.Way, requests: Mapping[str, Request]) -> Mover:
    return Mover(NumaSet.parse(way.target), (requests[way.reservation],), Kin(), CpuSet.parse(way.target_domain))


def _shops(machine: Machine, fill: float, random: Random) -> tuple[dict[str, Request], Talk]:
    """Four of them, each a group, over the first NUMA node; by pod, in the order of arrival."""
    services = ONLINE_BOUTIQUE.services
    requested = 4 * sum(service.cpu_milli * service.replicas for service in services)
    scale = fill * 1000 * machine.cpu_counts[0] / requested
    requests, talk = [], dict[tuple[str, str], float]()
    for shop in range(4):
        pods = {service.name: [f"{service.name}-{shop}-{at}" for at in range(service.replicas)] for service in services}
        for service in services:
            demand = Demand(int(scale * service.cpu_milli), 64 << 20, 64 << 20)
            opt_in = OptIn(f"shop/{shop}", span=Span.CACHE)
            requests += [
                Request(pod, f"{pod}-main", "main", opt_in, demand, demand, workload=f"shop/Pod/{pod}")
                for pod in pods[service.name]
            ]
        for call in ONLINE_BOUTIQUE.calls:
            pairs = [(source, target) for source in pods[call.source] for target in pods[call.target]]
            talk |= dict.fromkeys(pairs, WEIGHT * call.calls / len(pairs))
    random.shuffle(requests)
    return {request.pod: request for request in requests}, talk


def _inside(occupancy: Occupancy, talk: Talk) -> float:
    domains = {pod: reservation.cache_domain for pod, reservation in occupancy.reservations.items()}
    inside = sum(weight for (pod, peer), weight in talk.items() if domains[pod] and domains[pod] == domains[peer])
    return inside / sum(talk.values())


def _best(machine: Machine, occupancy: Occupancy, talk: Talk) -> float:
    """By a long search that may place all pods anew."""
    pods, domains = list(occupancy.reservations), machine.cache_domains[0]
    at = {pod: number for number, pod in enumerate(pods)}
    pulls: list[dict[int, float]] = [{} for _ in pods]
    for (pod, peer), weight in talk.items():
        pulls[at[pod]][at[peer]] = pulls[at[peer]][at[pod]] = weight
    problem = PartitionProblem(
        sizes=[(occupancy.reservations[pod].demand.cpu_milli, 0) for pod in pods],
        counts=[1] * len(pods),
        pulls=pulls,
        capacity=[(1000 * domain.bit_count(), 0) for domain in domains],
        nearness=[[float(domain == other) for other in domains] for domain in domains],
        pinned=[[0] * len(domains) for _ in pods],
    )
    start = [[int(occupancy.reservations[pod].cache_domain.mask == domain) for domain in domains] for pod in pods]
    return solve(problem, [start], effort=400).locality()


if __name__ == "__main__":
    main()
