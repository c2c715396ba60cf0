"""A process that dies, at whatever point, leaves no program attached and nothing pinned."""

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S
from tests.enforcer.observe.bpf_programs import next_program, program_name

pytestmark = pytest.mark.bpf


HOLDER = """
import sys
from enforcer.observe.collectors import chain, unix_sockets, wakeups

def reached(point):
    print(point, flush=True)
    sys.stdin.readline()

reached("starting")
collectors = [chain.choose(chain.Sources(chain.cgroup_root(), list)).collector]
for module in (unix_sockets, wakeups):
    try:
        collectors.append(module.open_collector())
    except Exception as error:
        print(error, file=sys.stderr)
reached("loaded")
for collector in collectors:
    collector.attach()
reached("attached")
while True:
    for collector in collectors:
        collector.drain()
        collector.detach()
        collector.attach()
"""


def ours():
    """Ids of all loaded programs of numakin."""
    result, last = set(), 0
    while True:
        try:
            last = next_program(last)
        except FileNotFoundError:
            return result
        try:
            if program_name(last).startswith("numakin"):
                result.add(last)
        except FileNotFoundError:
            continue  # unloaded in between


def held_by(pid):
    """Ids of the programs that a process, or a child of it, has a descriptor of: tests beside this one load some too."""
    result = set()
    for file in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            result.update(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith("prog_id:"))
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        result |= held_by(child)
    return result


def pinned():
    return {path for path in Path("/sys/fs/bpf").rglob("*") if "numakin" in path.name}


@pytest.mark.parametrize("point", ["starting", "loaded", "attached"])
def test_killed_it_leaves_nothing(bpf_allowed, point):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    while (reached := process.stdout.readline()) != point + "\n":
        assert reached, "it has ended"
        process.stdin.write("\n")
    held = held_by(process.pid)
    assert bool(held) == (point != "starting")
    assert held <= ours()
    process.stdin.write("\n")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    # The kernel frees programs a moment after their last descriptor.
    deadline = time.monotonic() + PATIENCE_S
    while held & ours() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not held & ours()
    assert not pinned()
