"""A whole CreateContainer as the runtime sees it: a real hook process at the other end of a real NRI socket."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.decide.timing import Times, of
from standins.machines import MACHINES, write_sysfs
from standins.runtime import Runtime

MACHINE = "kunpeng-920-2s"
"""Four NUMA nodes."""

MEMORY = 64 << 20
PATIENCE_S = 30.0


def round_trip(containers: int, repeats: int) -> Times:
    """Among that many containers of groups of ten."""
    with tempfile.TemporaryDirectory() as name, _enforced(Path(name)) as runtime:
        for number in range(containers):
            _create(runtime, f"p{number}", f"g{number // 10}", cpu=0.3)
        spans = []
        for number in range(repeats):
            pod = runtime.run_pod(f"new{number}", annotations={"group.numakin.io": "g0"})
            start = time.perf_counter_ns()
            container = runtime.create_container(pod, "main", cpu_request=0.3, memory_limit=MEMORY)
            spans.append(time.perf_counter_ns() - start)
            if not container.cpus:
                raise SystemExit(f"container {number} was not pinned; notes: {runtime.plugins.notes}")
            runtime.remove_pod(pod)
        return of(spans)


def _create(runtime: Runtime, name: str, group: str, cpu: float) -> None:
    pod = runtime.run_pod(name, annotations={"group.numakin.io": group})
    runtime.run_container(pod, "main", cpu_request=cpu, memory_limit=MEMORY)


@contextmanager
def _enforced(folder: Path) -> Iterator[Runtime]:
    """A runtime with an enforcer attached; nothing observes, so that the hook is timed alone."""
    write_sysfs(MACHINES[MACHINE], folder / "sys")
    with Runtime(folder / "nri.sock") as runtime:
        command = [sys.executable, "-m", "enforcer.main", "run", "--nri-socket", str(folder / "nri.sock")]
        command += ["--run-dir", str(folder / "run"), "--sysfs", str(folder / "sys"), "--node-name", "bench"]
        command += ["--metrics-listen", "127.0.0.1:0", "--observe", "off"]
        with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
            try:
                runtime.wait_for_plugin(PATIENCE_S)
                yield runtime
            finally:
                process.terminate()
                process.wait(PATIENCE_S)
