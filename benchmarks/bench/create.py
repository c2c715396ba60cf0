"""CreateContainer's rows: what a runtime waits for at rest, under load and after 10,000 containers, and what is held.

The runtime asks about one container at a time (NRI's library has one lock around every call), so of eight creates at
once the last waits for seven others' answers, whatever plugin it asks. What the runtime and the machine cost by
themselves is how much slower the least plugins become under the same load of the same run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench.row import NotHere, Row
from benchmarks.runtime import trial
from benchmarks.runtime.__main__ import FLOOR, TMPFS, quantiles
from benchmarks.runtime.trial import Load, Result, Settings

LEAST = "x least Python"
OPTED, PLAIN, GO = ("numakin", "opted"), ("numakin", "plain"), ("go", "plain")
P50, P99, P999 = range(3)

LOADS = {
    "8 at once": {"parallel": 8},
    "beside a CPU hog": {"hog": True},
    "8 at once beside a CPU hog": {"parallel": 8, "hog": True},
}
"""After the quiet creates, on the same processes."""

CROWDED_RUNS = 3
"""With 500 containers, quiet."""

MANY, MANY_QUICK = 10_000, 300
"""Creates of each kind."""


def create_container(*, quick: bool) -> list[Row]:
    """200 containers, quiet and under each load, several runs; then some with 500. Quick: quiet alone, once."""
    count, runs = (150, 1) if quick else (500, 5)
    quiet = [Load(count)]
    loads = [] if quick else [Load(count, **load) for load in LOADS.values()]  # type: ignore[arg-type]  # by field
    with _runs() as run:
        results = [run(Settings([*quiet, *loads])) for _ in range(runs)]
        rows = [*_latencies(results), *_process("200 containers", results)]
        if quick:
            return rows
        crowded = [run(Settings(quiet, running=500)) for _ in range(CROWDED_RUNS)]
    growths = [_at(more, OPTED, P50) / _at(few, OPTED, P50) for few, more in zip(results, crowded, strict=False)]
    return [
        *rows,
        *under_load(results, LOADS),
        Row("CreateContainer, opted in, p50 with 500 containers", "x with 200", 1.3, growths),
        *_process("500 containers", crowded),
    ]


def many_creates(*, quick: bool) -> list[Row]:
    """The last tenth of so many creates beside the first, in what the processes hold and in latency."""
    tenth = (MANY_QUICK if quick else MANY) // 10
    with _runs() as run:
        result = run(Settings([Load(tenth), Load(8 * tenth), Load(tenth)]))
    first, last = result.usage["numakin"][1], result.usage["numakin"][-1]
    of = f"{10 * tenth:,} creates of each kind"
    rows = [Row(f"growth of the {part}'s RSS, {of}", "MiB", None, [last[part].rss - first[part].rss]) for part in first]
    descriptors = [float(last[part].descriptors - first[part].descriptors) for part in first]
    rows.append(Row(f"growth of descriptors, {of}", "in all", 0.0, [sum(descriptors)]))
    if quick:
        return rows
    return [
        Row(f"CreateContainer, opted in, p99, the last of {of}", "x the first ones'", 2.0, _grown([result], OPTED, 2)),
        Row(f"least Python plugin, p99, the last of {of}", "x the first ones'", None, _grown([result], FLOOR, 2)),
        *rows,
    ]


@contextmanager
def _runs() -> Iterator[Callable[[Settings], Result]]:
    """Makes a run of settings. NotHere where the Go programs can't be built."""
    with tempfile.TemporaryDirectory(prefix="numakin-", dir=TMPFS if TMPFS.is_dir() else None) as name:
        try:
            trial.build(Path(name))
        except trial.Unavailable as lack:
            raise NotHere(str(lack)) from lack

        def run(settings: Settings) -> Result:
            with tempfile.TemporaryDirectory(dir=name) as folder:
                return trial.run(settings, Path(name), Path(folder))

        yield run


def _at(result: Result, key: tuple[str, str], quantile: int, load: int = 0) -> float:
    return quantiles(result.micros[load][key])[quantile]


def _grown(results: Sequence[Result], key: tuple[str, str], load: int) -> list[float]:
    """The p99 under a load beside that of the first one, of each run."""
    return [_at(result, key, P99, load) / _at(result, key, P99) for result in results]


def _latencies(results: Sequence[Result]) -> list[Row]:
    def ratios(key: tuple[str, str], quantile: int) -> list[float]:
        return [_at(result, key, quantile) / _at(result, FLOOR, quantile) for result in results]

    def tails(key: tuple[str, str]) -> list[float]:
        return [_at(result, key, P99) / _at(result, key, P50) for result in results]

    return [
        Row("CreateContainer, not opted in, p50", LEAST, 1.5, ratios(PLAIN, P50)),
        Row("CreateContainer, not opted in, p99", LEAST, 2.0, ratios(PLAIN, P99)),
        Row("CreateContainer, opted in, p50", LEAST, 3.0, ratios(OPTED, P50)),
        Row("CreateContainer, opted in, p50", "ms", 0.5, [_at(result, OPTED, P50) / 1000 for result in results]),
        Row("CreateContainer, opted in, p99", "x its p50", 3.0, tails(OPTED)),
        Row("least Python plugin, p99", "x its p50", None, tails(FLOOR)),
        Row("least Go plugin, p99", "x its p50", None, tails(GO)),
        Row("CreateContainer, opted in, p99.9", "ms", 5.0, [_at(result, OPTED, P999) / 1000 for result in results]),
    ]


def under_load(results: Sequence[Result], loads: Iterable[str]) -> list[Row]:
    """loads: their names, of those after the first one, which is quiet."""
    rows = []
    for load, name in enumerate(loads, start=1):
        ours, least = _grown(results, OPTED, load), _grown(results, FLOOR, load)
        beside = [own / floor for own, floor in zip(ours, least, strict=True)]
        rows += [
            Row(f"CreateContainer, opted in, p99, {name}", "x the quiet one", 2.0, ours),
            Row(f"least Python plugin, p99, {name}", "x its quiet one", None, least),
            Row(f"least Go plugin, p99, {name}", "x its quiet one", None, _grown(results, GO, load)),
            Row(f"growth of numakin's p99, {name}", "x least Python's growth", None, beside),
        ]
    return rows


def _process(what: str, results: Sequence[Result]) -> list[Row]:
    """At rest, before the creates."""
    pss = [sum(usage.pss for usage in result.usage["numakin"][0].values()) for result in results]
    started = [1000 * result.registered_s["numakin"] for result in results]
    return [
        Row(f"supervisor, hook and observer (PSS), {what}", "MiB", 60.0, pss),
        Row(f"start to registered, {what}", "ms", 300.0, started),
    ]
