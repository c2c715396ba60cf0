"""CreateContainer as a container runtime sees it, with the Go library that containerd links at the other end.

    python -m benchmarks.runtime                          200 containers run already; about a minute
    python -m benchmarks.runtime --running 500
    python -m benchmarks.runtime --parallel 8 --hog       then eight at once, with a process that computes beside them
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
from benchmarks.runtime.trial import ROOT, Load, Result, Settings, Unavailable

TMPFS = Path("/dev/shm")
"""A run folder is on a tmpfs on any node (/run)."""

FLOOR = ("python", "plain")
QUANTILES = (0.5, 0.99, 0.999)


def quantiles(micros) -> list[float]:
    ordered = sorted(micros)
    return [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in QUANTILES]


def figures(results: list[Result], load: int) -> dict[str, list[float]]:
    """By plugin and kind, medians over the runs: p50, p99, p99.9, each one's ratio to the floor's of its load, and to
    its own of the first load.
    """
    rows = {}
    for key in results[0].micros[load]:
        runs = []
        for result in results:
            own, floor = quantiles(result.micros[load][key]), quantiles(result.micros[load][FLOOR])
            first = quantiles(result.micros[0][key])
            runs.append([*own, *(value / other for value, other in zip(own * 2, floor + first, strict=True))])
        rows[" ".join(key)] = [median(column) for column in zip(*runs, strict=True)]
    return rows


NAMES = {"go plain": "least Go plugin", "python plain": "least Python plugin"}


def table(settings: Settings, results: list[Result]) -> str:
    lines = [line for number, load in enumerate(settings.loads) for line in _latencies(load, figures(results, number))]
    return "\n".join([*lines, *(line for name in settings.sources for line in _processes(name, results))])


def _latencies(load: Load, rows: dict[str, list[float]]) -> list[str]:
    title = f"microseconds, {load.parallel} at once" + (" beside a hog" if load.hog else "")
    head = f"{title:36}" + 3 * f"{'p50':>8}{'p99':>8}{'p99.9':>8}"
    lines = ["", " " * 63 + "beside least Python's   beside its quiet ones", head]
    for key, row in rows.items():
        name = NAMES.get(key, key.replace("opted", "opted in").replace("plain", "not opted in"))
        lines.append(f"{name:36}" + "".join(f"{x:8.0f}" for x in row[:3]) + "".join(f"{x:8.2f}" for x in row[3:]))
    return lines


def _processes(name: str, results: list[Result]) -> list[str]:
    """What each process of numakin holds, before the creates and after them."""
    started = 1000 * median(result.registered_s[name] for result in results)
    lines = [f"{name}: start to synchronized {started:.0f} ms"]
    for what in ("pss", "rss", "descriptors"):
        for when, at in (("before", 0), ("after", -1)):
            parts = {
                part: median(getattr(result.usage[name][at][part], what) for result in results)
                for part in results[0].usage[name][at]
            }
            named = ", ".join(f"{part} {value:.1f}" for part, value in parts.items())
            lines.append(f"{name}: {what} {when} {sum(parts.values()):.1f} ({named})")
    return lines


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
    loads = [Load(options.count)]
    if options.parallel > 1 or options.hog:
        loads.append(Load(options.count, options.parallel, options.hog))
    settings = Settings(loads, running=options.running, sources=sources)
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
    if options.json:
        print(json.dumps([figures(results, number) for number in range(len(loads))]))
    else:
        print(table(settings, results))


if __name__ == "__main__":
    main()
