"""A whole CreateContainer as the runtime sees it: a real hook process at the other end of a real NRI socket.

Both ends are Python, one process each. A round trip has in it what the stand-in runtime does itself (it builds the
request, takes the answer apart, and hands it from the thread that reads to the one that asked) and two wake-ups of a
process and one of a thread; a real runtime has the first wake-ups too, and does the rest in a fraction of the time.
That much is seen of a container that has not opted in: the hook takes note of it and answers with nothing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.decide.timing import Times, of
from lab.standins.machines import MACHINES, write_sysfs
from lab.standins.runtime import Runtime

MACHINE = "kunpeng-920-2s"
"""Four NUMA nodes."""

MEMORY = 64 << 20
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """pinned: of a container that has opted in; floor: of one that has not."""

    pinned: Times
    floor: Times


def round_trips(containers: int, repeats: int) -> RoundTrips:
    """Among that many containers of groups of ten; the two kinds in turn, so that both meet the same machine."""
    with tempfile.TemporaryDirectory() as name, _enforced(Path(name)) as runtime:
        for number in range(containers):
            _create(runtime, f"p{number}", f"g{number // 10}", cpu=0.3)
        spans: dict[bool, list[int]] = {True: [], False: []}
        for number in range(2 * repeats):
            opted_in = number % 2 == 0
            pod = runtime.run_pod(f"new{number}", annotations={"group.numakin.io": "g0"} if opted_in else {})
            start = time.perf_counter_ns()
            container = runtime.create_container(pod, "main", cpu_request=0.3, memory_limit=MEMORY)
            spans[opted_in].append(time.perf_counter_ns() - start)
            if bool(container.cpus) is not opted_in:
                raise SystemExit(f"container {number} has CPUs {container.cpus!r}; notes: {runtime.plugins.notes}")
            runtime.remove_pod(pod)
        return RoundTrips(pinned=of(spans[True]), floor=of(spans[False]))


def _create(runtime: Runtime, name: str, group: str, cpu: float) -> None:
    pod = runtime.run_pod(name, annotations={"group.numakin.io": group})
    runtime.run_container(pod, "main", cpu_request=cpu, memory_limit=MEMORY)


@contextmanager
def _enforced(folder: Path) -> Iterator[Runtime]:
    """A runtime with an enforcer attached; nothing observes, so that the hook is timed alone."""
    write_sysfs(MACHINES[MACHINE], folder / "sys")
    with Runtime(folder / "nri.sock") as runtime:
        command = [sys.executable, "-m", "enforcer", "run", "--nri-socket", str(folder / "nri.sock")]
        command += ["--run-dir", str(folder / "run"), "--sysfs", str(folder / "sys"), "--node-name", "bench"]
        command += ["--metrics-listen", "127.0.0.1:0", "--observe", "off"]
        with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
            try:
                runtime.wait_for_plugin(PATIENCE_S)
                yield runtime
            finally:
                process.terminate()
                process.wait(PATIENCE_S)
