import os
import sys

import pytest

from enforcer.observe.bpf.counters import CgroupPair, Volume
from enforcer.observe.collectors import wakeups
from lab.standins.patience import PATIENCE_S

pytestmark = [pytest.mark.bpf, pytest.mark.usefixtures("way")]

PASSES = 997

# Passes a byte back and forth over two named pipes; the first argument says who begins.
PASSER = """
import os, sys
first, count, own, other = sys.argv[1] == "first", int(sys.argv[2]), sys.argv[3], sys.argv[4]
ends = [os.open(own, os.O_RDONLY), os.open(other, os.O_WRONLY)] if first else None
if not first:
    out = os.open(other, os.O_WRONLY)
    ends = [os.open(own, os.O_RDONLY), out]
for _ in range(count):
    if first:
        os.write(ends[1], b"x")
    os.read(ends[0], 1)
    if not first:
        os.write(ends[1], b"x")
"""


def test_two_cgroups_that_pass_a_byte_through_pipes_show_by_waking(lab, allowed, tmp_path):
    collector = allowed(wakeups.open_collector)
    single, other = lab.cgroup("one"), lab.cgroup("other")
    there, back = tmp_path / "there", tmp_path / "back"
    os.mkfifo(there)
    os.mkfifo(back)
    command = [sys.executable, "-SE", "-c", PASSER]
    first = lab.start(*command, "first", str(PASSES), str(back), str(there), cgroup=single)
    second = lab.start(*command, "second", str(PASSES), str(there), str(back), cgroup=other)
    assert first.wait(PATIENCE_S) == second.wait(PATIENCE_S) == 0
    counted = collector.drain().counters
    collector.close()
    woken = [
        counted.get(CgroupPair("wake", source.id, target.id), Volume()).tx_messages
        for source, target in ((single, other), (other, single))
    ]
    # One that is preempted by whom it woke is still running when its answer comes, and needs no waking: a round trip is one
    # or two wake-ups, and sometimes all are in one direction.
    assert PASSES // 2 < sum(woken) < 2 * PASSES + 100
