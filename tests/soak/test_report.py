"""What a soak leaves behind, also one that is ended in the middle of a round."""

from __future__ import annotations

import socket

import pytest

from lab.standins.patience import until
from tests.soak import report
from tests.soak.invariants import Broken, Invariant
from tests.soak.packets import namespaces
from tests.soak.packets.link import Link
from tests.soak.packets.scrambling import Shares
from tests.soak.rounds import Tally


def test_a_fault_whose_round_was_not_finished_has_its_row() -> None:
    tally = Tally(rounds=1)
    tally.tries.update(("watch: RST",))
    assert "| watch: RST | 1 | 0 | 0.0 | 0 | 0 | 0 | 0 | 0 | 0 |" in report.table(tally, ())


def test_what_was_broken_counts_for_each_fault_of_its_round() -> None:
    tally = Tally(rounds=2)
    tally.tries.update(("SIGKILL: hook", "watch: RST", "watch: 410"))
    tally.broken.append((("SIGKILL: hook", "watch: RST"), Broken(Invariant.TWICE, "n1: CPUs 1 are exclusive twice")))
    rows = report.table(tally, ()).splitlines()
    assert [row.endswith("| 0 | 0 | 1 | 0 | 0 | 0 |") for row in rows[2:5]] == [True, False, True]
    assert "CPUs exclusive twice 1" in report.summary(tally, 3, 60)


@pytest.mark.skipif(bool(namespaces.missing()), reason=f"needs a link: {namespaces.missing()}")
def test_packets_that_were_scrambled_are_counted_by_node() -> None:
    with Link() as link, link.node.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        with link.scrambled(Shares(lost=1.0), seed=0):
            for _ in range(3):
                sender.sendto(b"?", (link.extender.address, 9))
            until(lambda: link.counts().came == 3, "the packets", 60)
        assert report.packets({"n1": link}).splitlines()[2] == "| n1 | 3 | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |"
