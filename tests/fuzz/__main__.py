"""python -m tests.fuzz (make fuzz): every target with coverage, each for its share of the time.

An input that makes a target raise is kept in build/fuzz/TARGET; put it into tests/fuzz/corpus/TARGET with its fix.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "fuzz"

LONGEST_INPUT_S = 20
"""Of one input; the longest of them takes milliseconds where nothing hangs."""

MOST_MEMORY_MIB = 2048
LARGEST_INPUT = 1 << 14


@dataclass(frozen=True, slots=True)
class Outcome:
    """inputs: tried. kept: those that reached something new. fault: empty where there was none."""

    target: str
    inputs: int
    kept: int
    fault: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz ARGS=", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=60, help="for all targets together (default: 60)")
    parser.add_argument("--jobs", type=int, default=1, help="targets at one time (default: 1)")
    given = parser.parse_args()
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    chosen = [TARGETS[name] for name in given.targets or TARGETS]
    seconds = max(5, round(given.minutes * 60 * given.jobs / len(chosen)))
    with ThreadPoolExecutor(given.jobs) as jobs:
        outcomes = list(jobs.map(lambda target: _fuzzed(target, seconds), chosen))
    faults = [outcome for outcome in outcomes if outcome.fault]
    print(f"\n{sum(outcome.inputs for outcome in outcomes):,} inputs, {len(faults)} targets with a fault")
    for outcome in faults:
        print(f"{outcome.target}: {outcome.fault}")
    return 1 if faults else 0


def _fuzzed(target: Target, seconds: int) -> Outcome:
    folder = BUILD / target.name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.corpus()):
        (corpus / f"seed-{number:03}").write_bytes(data)
    command = [sys.executable, "-m", "tests.fuzz.covered", target.name, f"-max_total_time={seconds}"]
    command += [f"-timeout={LONGEST_INPUT_S}", f"-rss_limit_mb={MOST_MEMORY_MIB}", f"-max_len={LARGEST_INPUT}"]
    command += ["-print_final_stats=1", f"-artifact_prefix={folder}/", str(corpus)]
    log = folder / "log"
    with log.open("wb") as output:
        status = subprocess.run(command, cwd=ROOT, env=os.environ, stdout=output, stderr=output, check=False).returncode
    outcome = _read(target.name, log.read_text(errors="replace"), status, folder)
    print(
        f"{outcome.target}: {outcome.inputs:,} inputs, {outcome.kept} kept: {outcome.fault or 'no fault'}", flush=True
    )
    return outcome


def _read(target: str, log: str, status: int, folder: Path) -> Outcome:
    tried = re.findall(r"^#(\d+)\s", log, re.MULTILINE) or re.findall(r"number_of_executed_units: (\d+)", log) or ["0"]
    kept = re.findall(r"corp: (\d+)/", log) or ["0"]
    fault = ""
    if status:
        raised = re.findall(r"Uncaught Python exception: ===\s*\n(.+)", log) or re.findall(
            r"ERROR: libFuzzer: (.+)", log
        )
        fault = f"{raised[-1] if raised else f'status {status}'}; input and log in {folder.relative_to(ROOT)}"
    return Outcome(target, int(tried[-1]), int(kept[-1]), fault)


if __name__ == "__main__":
    sys.exit(main())
