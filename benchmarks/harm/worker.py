"""What runs in each container: pieces of work of a fixed size, by one of three loads, and how long each took.

    worker.py FILE LOAD AMOUNT WORK SEED

Standard library only. LOAD `served`: pieces come at random moments, AMOUNT CPUs' worth of them, and who waited for a
second goes away, which counts as a second and as nothing done. `busy`: AMOUNT processes without a pause. `bursts`: one
process, busy for AMOUNT seconds of every two. WORK: bytes of a piece. SEED: of the moments. Each process appends a line
to FILE.N every second: the second (CLOCK_MONOTONIC), the pieces done in it, and their times in microseconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

PATIENCE_S = 1.0
PERIOD_S = 2.0
PIECE_S = 0.002
"""CPU time of a piece, for which WORK is found."""


def work(data: bytes) -> None:
    hashlib.sha256(data).digest()


def piece() -> int:
    """Bytes whose hash takes `PIECE_S` of CPU time here and now: the least of several attempts."""
    size = 1 << 20
    data, fastest = bytes(size), float("inf")
    for _ in range(50):
        begin = time.process_time()
        work(data)
        fastest = min(fastest, time.process_time() - begin)
    return int(size * PIECE_S / fastest)


def served(cpus: float, seed: int) -> Iterator[float]:
    """The moments at which pieces come."""
    random, at = Random(seed), time.monotonic()
    while True:
        at += random.expovariate(cpus / PIECE_S)
        yield at


def busy(_amount: float, _seed: int) -> Iterator[float]:
    while True:
        yield time.monotonic()


def bursts(busy_s: float, seed: int) -> Iterator[float]:
    offset = Random(seed).uniform(0, PERIOD_S)
    while True:
        now = time.monotonic()
        phase = (now + offset) % PERIOD_S
        yield now if phase < busy_s else now + PERIOD_S - phase


LOADS = {"served": served, "busy": busy, "bursts": bursts}


def run(file: Path, moments: Iterator[float], data: bytes) -> None:
    """Never returns."""
    second, done, times = int(time.monotonic()), 0, list[int]()
    with file.open("w", buffering=1) as out:
        for moment in moments:
            if (wait := moment - time.monotonic()) > 0:
                time.sleep(wait)
            gave_up = time.monotonic() - moment > PATIENCE_S
            if not gave_up:
                work(data)
            now = time.monotonic()
            while int(now) > second:
                out.write(json.dumps([second, done, times]) + "\n")
                second, done, times = second + 1, 0, []
            done += not gave_up
            times.append(round(1e6 * min(PATIENCE_S, now - moment)))


def main() -> None:
    file, load, amount, size, seed = sys.argv[1:]
    number = 0
    while load == "busy" and number < int(amount) - 1 and os.fork() == 0:
        number += 1
    run(Path(f"{file}.{number}"), LOADS[load](float(amount), int(seed)), bytes(int(size)))


if __name__ == "__main__":
    main()
