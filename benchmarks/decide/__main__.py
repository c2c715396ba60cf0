"""What one decision costs, and how that grows with NUMA nodes and containers.

    python -m benchmarks.decide                    a table, about a minute
    python -m benchmarks.decide --json             for a program
    python -m benchmarks.decide --no-round-trip    without starting an enforcer

The machine is 70 % requested; the newcomer has ten peers. `decide` is the pure function, `and commit` also the next
occupancy with its sums. The round trip is CreateContainer at the runtime's side, with the stand-in runtime's own work
in it (`round_trip`): how much of it is not ours shows in that of a container that has not opted in. For comparison,
what a runtime saw of the field's plugins on such a machine: balloons 1.3-1.8 ms, topology-aware 2.5-3.0 ms at the
median.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from benchmarks.decide.round_trip import RoundTrips, round_trips
from benchmarks.decide.situation import MEMORY, Situation, situation
from benchmarks.decide.timing import exponent, timed
from numakin.placement.decide.decide import decide
from numakin.placement.optin.parsing import Cpus

NUMA_NODES = (2, 4, 8, 16, 32, 64)
CONTAINERS = (10, 50, 100, 200, 500)
AT = (4, 200)
"""NUMA nodes and containers of the goals."""

TRIPS = {"pinned": "pinned", "floor": "not opted in: the floor"}

NONE = {"pinned": {"median": None}}

GOALS = (
    ("round trip, median us", lambda results: (results["round_trip"] or NONE)["pinned"]["median"], 500.0),
    ("growth with NUMA nodes", lambda results: results["growth"]["numa_nodes"], 2.0),
    ("growth with containers", lambda results: results["growth"]["containers"], 1.0),
)  # fmt: skip

KINDS: dict[str, Callable[[int, int], Situation]] = {
    "shared": situation,
    "exclusive CPUs": lambda nodes, containers: situation(nodes, containers, Cpus.EXCLUSIVE),
    "over two NUMA nodes": lambda nodes, containers: situation(nodes, containers, wide=0.45),
    "memory fits nowhere": lambda nodes, containers: situation(nodes, containers, memory=nodes * MEMORY),
}


def decided(situated: Situation) -> object:
    return decide(situated.machine, situated.occupancy, situated.request, situated.kin)


def committed(situated: Situation) -> object:
    decision = decide(situated.machine, situated.occupancy, situated.request, situated.kin)
    return decision.applied(situated.occupancy, situated.request).load(situated.machine)


def measured(kind: str, numa_nodes: int, containers: int, repeats: int) -> dict[str, object]:
    situated = KINDS[kind](numa_nodes, containers)
    return {
        "kind": kind,
        "numa_nodes": numa_nodes,
        "containers": containers,
        "decide": asdict(timed(partial(decided, situated), repeats)),
        "commit": asdict(timed(partial(committed, situated), repeats)),
    }


def every(repeats: int, trips: RoundTrips | None) -> dict[str, object]:
    """All figures: rows, growth exponents of the shared kind, the round trip."""
    grid = [(nodes, AT[1]) for nodes in NUMA_NODES] + [(AT[0], count) for count in CONTAINERS if count != AT[1]]
    grid.append((NUMA_NODES[-1], CONTAINERS[-1]))
    rows = [measured(kind, *point, repeats) for kind in KINDS for point in grid]
    at = {(row["numa_nodes"], row["containers"]): row["decide"]["median"] for row in rows if row["kind"] == "shared"}
    return {
        "rows": rows,
        "growth": {
            "numa_nodes": exponent(NUMA_NODES, [at[nodes, AT[1]] for nodes in NUMA_NODES]),
            "containers": exponent(CONTAINERS, [at[AT[0], count] for count in CONTAINERS]),
        },
        "round_trip": asdict(trips) if trips else None,
    }


def table(results) -> str:
    head = f"{'':22}{'NUMA':>5}{'con-':>8}{'decide, us':>16}{'and commit, us':>20}\n"
    head += f"{'':22}{'nodes':>5}{'tainers':>8}{'median':>8}{'p99':>8}{'median':>12}{'p99':>8}"
    lines = [head]
    for row in results["rows"]:
        numbers = [row[name][field] for name in ("decide", "commit") for field in ("median", "p99")]
        lines.append(
            f"{row['kind']:22}{row['numa_nodes']:5}{row['containers']:8}"
            f"{numbers[0]:8.0f}{numbers[1]:8.0f}{numbers[2]:12.0f}{numbers[3]:8.0f}"
        )
    growth = results["growth"]
    lines.append(f"growth: NUMA nodes ^ {growth['numa_nodes']:.2f}, containers ^ {growth['containers']:.2f}")
    if results["round_trip"]:
        lines.append(f"CreateContainer at {AT[0]} NUMA nodes, {AT[1]} containers, us:")
        for kind, trip in results["round_trip"].items():
            lines.append(f"  {TRIPS[kind]:40} median {trip['median']:.0f}, p99 {trip['p99']:.0f}")
    return "\n".join(lines + [_goal(*goal, results) for goal in GOALS])


def _goal(name, read, most, results) -> str:
    value = read(results)
    if value is None:
        return f"goal {name} <= {most:g}: not measured"
    return f"goal {name} <= {most:g}: {'met' if value <= most else 'missed'} ({value:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decide", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=1000, help="timed calls of each row (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print figures for a program")
    parser.add_argument("--no-round-trip", action="store_true", help="time the function only")
    options = parser.parse_args()
    trips = None if options.no_round_trip else round_trips(AT[1], options.repeats)
    results = every(options.repeats, trips)
    print(json.dumps(results) if options.json else table(results))


if __name__ == "__main__":
    main()
