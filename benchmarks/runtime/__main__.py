"""CreateContainer as a container runtime sees it, with the Go library that containerd links at the other end.

    python -m benchmarks.runtime                          200 containers run already; about a minute
    python -m benchmarks.runtime --running 500
    python -m benchmarks.runtime --parallel 8 --hog       eight at once, with a process that computes beside them
    python -m benchmarks.runtime --against ../other       the numakin of another folder as well, in the same run

Each container has 20 environment variables and 10 mounts; numakin has learned a traffic graph of all that run. Beside
it in the same run, in turn by blocks: the least Go plugin on NRI's library, and the least Python plugin, which is what
Python and the wire take by themselves. Ratios of one run are comparable; figures of different hours are not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.runtime import trial
from benchmarks.runtime.trial import ROOT, Result, Settings, Unavailable

TMPFS = Path("/dev/shm")
"""A run folder is on a tmpfs on any node (/run)."""

FLOOR = ("python", "plain")
QUANTILES = (0.5, 0.99, 0.999)


def quantiles(micros) -> list[float]:
    ordered = sorted(micros)
    return [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in QUANTILES]


def figures(results: list[Result]) -> dict[str, list[float]]:
    """By plugin and kind, medians over the runs: p50, p99, p99.9 and each one's ratio to the floor's of its run."""
    rows = {}
    for key in results[0].micros:
        runs = []
        for result in results:
            own, floor = quantiles(result.micros[key]), quantiles(result.micros[FLOOR])
            runs.append([*own, *(value / other for value, other in zip(own, floor, strict=True))])
        rows[" ".join(key)] = [median(column) for column in zip(*runs, strict=True)]
    return rows


NAMES = {"go plain": "least Go plugin", "python plain": "least Python plugin"}


def table(results: list[Result]) -> str:
    lines = [f"{'CreateContainer, microseconds':32}{'p50':>8}{'p99':>8}{'p99.9':>8}   beside the least Python plugin's"]
    for key, row in figures(results).items():
        own, ratios = row[:3], row[3:]
        name = NAMES.get(key, key.replace("opted", "opted in").replace("plain", "not opted in"))
        lines.append(f"{name:32}" + "".join(f"{x:8.0f}" for x in own) + "   " + "".join(f"{x:8.2f}" for x in ratios))
    for name in results[0].memory:
        before, after = (
            {part: median(result.memory[name][at][part] for result in results) for part in results[0].memory[name][at]}
            for at in (0, 1)
        )
        parts, parts_after = (", ".join(f"{part} {size:.1f}" for part, size in at.items()) for at in (before, after))
        started = 1000 * median(result.registered_s[name] for result in results)
        fds = " -> ".join(str(round(median(result.descriptors[name][at] for result in results))) for at in (0, 1))
        lines.append(f"{name}: start to synchronized {started:.0f} ms; descriptors {fds}")
        lines.append(f"{name}: PSS {sum(before.values()):.1f} MiB ({parts})")
        lines.append(f"{name}: PSS afterwards {sum(after.values()):.1f} MiB ({parts_after})")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runtime", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500, help="timed creates of each kind (default: %(default)s)")
    parser.add_argument("--running", type=int, default=200, help="containers that run already (default: %(default)s)")
    parser.add_argument("--parallel", type=int, default=1, help="creates at once (default: %(default)s)")
    parser.add_argument("--hog", action="store_true", help="a process that computes without a pause beside them")
    parser.add_argument("--runs", type=int, default=1, help="repetitions; medians are shown (default: %(default)s)")
    parser.add_argument("--against", type=Path, help="a folder with another version of numakin")
    parser.add_argument("--json", action="store_true", help="print figures for a program")
    options = parser.parse_args()
    sources = {"numakin": ROOT} | ({"other": options.against.resolve()} if options.against else {})
    settings = Settings(
        count=options.count, running=options.running, parallel=options.parallel, hog=options.hog, sources=sources
    )
    results = []
    with tempfile.TemporaryDirectory(prefix="numakin-", dir=TMPFS if TMPFS.is_dir() else None) as name:
        try:
            trial.build(Path(name))
        except Unavailable as lack:
            sys.exit(str(lack))
        for number in range(options.runs):
            folder = Path(name) / str(number)
            folder.mkdir()
            results.append(trial.run(settings, Path(name), folder))
    print(json.dumps(figures(results)) if options.json else table(results))


if __name__ == "__main__":
    main()
