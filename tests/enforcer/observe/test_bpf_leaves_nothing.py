"""A process that dies, at whatever point, leaves no program attached and nothing pinned."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from standins.patience import PATIENCE_S
from tests.enforcer.observe.bpf_programs import next_program, program_name

pytestmark = pytest.mark.bpf


HOLDER = """
import sys
from enforcer.observe.collectors import chain, unix_sockets, wakeups
print("starting", flush=True)
collectors = [chain.choose(chain.Sources(chain.cgroup_root(), list)).collector]
for module in (unix_sockets, wakeups):
    try:
        collectors.append(module.open_collector())
    except Exception as error:
        print(error, file=sys.stderr)
print("loaded", flush=True)
for collector in collectors:
    collector.attach()
print("attached", flush=True)
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


def pinned():
    return {path for path in Path("/sys/fs/bpf").rglob("*") if "numakin" in path.name}


@pytest.mark.parametrize("point", ["starting", "loaded", "attached"])
def test_killed_it_leaves_nothing(bpf_allowed, point):
    before = ours()
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert point + "\n" in iter(process.stdout.readline, "")
    held = ours() - before
    assert bool(held) == (point != "starting")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    # The kernel frees programs a moment after their last descriptor.
    deadline = time.monotonic() + PATIENCE_S
    while held & ours() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not held & ours()
    assert not pinned()
