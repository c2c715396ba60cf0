"""The benchmark of harm: how CPU is shared where pods are pinned, and what is made of the pairs of runs."""

from __future__ import annotations

import json
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harm import queues
from benchmarks.harm.measured import LEAST, interval, verdict
from benchmarks.harm.node import figures
from benchmarks.harm.played import PODS, PlayedMachine, played
from benchmarks.harm.relieved import RelievedMachine
from benchmarks.harm.sharing import Sharer, fair
from benchmarks.harm.situations import Pod
from benchmarks.harm.worker import LOADS, PIECE_S

BOTH, FIRST, SECOND = 0b11, 0b01, 0b10
TWO = {0: 1.0, 1: 1.0}


@pytest.mark.parametrize(
    ("sharers", "got"),
    [
        pytest.param([(1, 1, BOTH)] * 3, [2 / 3] * 3, id="three-free-ones-share-both"),
        pytest.param([(1, 1, FIRST)] * 2 + [(1, 1, BOTH)], [0.5, 0.5, 1], id="two-pinned-halve-their-node"),
        pytest.param([(0.2, 1, FIRST), (2, 1, FIRST)], [0.2, 0.8], id="what-one-does-not-want-is-the-other's"),
        pytest.param([(2, 3, FIRST), (2, 1, FIRST)], [0.75, 0.25], id="by-weight"),
        pytest.param([(0.3, 1, FIRST), (0.3, 1, SECOND)], [0.3, 0.3], id="enough-for-all"),
        pytest.param([(2, 1, BOTH), (0.9, 1, FIRST)], [1.1, 0.9], id="the-free-one-makes-way"),
    ],
)
def test_cpu_is_shared_max_min_fair_among_those_that_may_run_there(sharers, got):
    assert fair(TWO, [Sharer(*each) for each in sharers]) == pytest.approx(got)


MACHINE = {0: 4.0, 1: 4.0, 2: 2.0}
SHARERS = st.lists(
    st.builds(Sharer, st.floats(0.01, 8), st.floats(0.1, 10), st.integers(1, 7)), min_size=1, max_size=12
)


@given(SHARERS)
def test_no_pod_gets_more_than_it_wants_and_no_cpu_is_idle_that_one_wants(sharers):
    got = fair(MACHINE, sharers)
    assert all(0 <= own <= sharer.wants + 1e-9 for own, sharer in zip(got, sharers, strict=True))
    for union in range(1, 8):
        confined = sum(own for own, each in zip(got, sharers, strict=True) if not each.mask & ~union)
        assert confined <= sum(cpus for node, cpus in MACHINE.items() if union >> node & 1) + 1e-6
    wanting = 0
    for own, sharer in zip(got, sharers, strict=True):
        if own < sharer.wants - 1e-6:
            wanting |= sharer.mask
    able = sum(cpus for node, cpus in MACHINE.items() if wanting >> node & 1)
    users = sum(own for own, each in zip(got, sharers, strict=True) if each.mask & wanting)
    assert users >= able - 1e-6


def test_a_pods_figures_are_of_the_seconds_of_the_measurement_and_of_all_of_its_processes(tmp_path):
    for number, rate in enumerate((100, 50)):
        lines = [[second, rate, [2000] * (rate - 2) + [9000] * 2] for second in range(10, 20)]
        (tmp_path / f"web.{number}").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = figures(tmp_path, Pod("web", 100, "busy", 2), range(12, 16), "0-1")
    assert (found.throughput, found.p99_ms, found.cpus) == (150, 9.0, "0-1")


def test_of_served_work_what_counts_is_the_part_that_was_done_whatever_came(tmp_path):
    for name, came in (("calm", 10), ("rush", 40)):
        line = [5, came * 9 // 10, [2000] * came]
        (tmp_path / f"{name}.0").write_text(json.dumps(line) + "\n")
        assert figures(tmp_path, Pod(name, 100, "served", 0.5), range(5, 6), "0").throughput == 0.9


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param([1.0, 1.01, 0.99, 1.0, 1.02, 0.98], "", id="no-worse"),
        pytest.param([0.5, 0.52, 0.49, 0.5, 0.51, 0.5], "WORSE", id="half"),
        pytest.param([0.5, 1.3, 0.7, 1.2, 0.8, 1.05], "worse, by chance", id="too-noisy-to-tell"),
    ],
)
def test_a_pod_that_has_less_than_it_had_is_flagged(values, said):
    assert verdict(values) == said
    assert interval(values).low <= interval(values).value <= interval(values).high


def test_pieces_of_served_work_come_at_the_same_moments_in_both_runs_of_a_pair_and_take_what_was_said():
    moments = [list(islice(LOADS["served"](0.5, 7), 2000)) for _ in range(2)]
    first, second = ([moment - run[0] for moment in run] for run in moments)
    assert first == pytest.approx(second, abs=1e-3)
    assert 2000 * PIECE_S / first[-1] == pytest.approx(0.5, rel=0.1)


def test_of_500_pods_none_has_less_than_without_cpusets_once_relief_has_had_its_fifteen_seconds():
    """Without it the same pods on the same machines do have less."""
    confined, relieved = (
        played(0.9, 0, use_known=False, machine=machine) for machine in (PlayedMachine, RelievedMachine)
    )
    assert len(relieved) == PODS
    assert min(ratio for _, ratio in confined) < 0.8
    assert min(ratio for _, ratio in relieved) >= LEAST


def test_a_divided_pool_costs_less_the_larger_it_is_and_most_when_it_is_full(monkeypatch):
    monkeypatch.setattr(queues, "PIECES", 20_000)
    costs = {
        (cpus, load): queues.p99(2 * cpus, load) / queues.p99(cpus, load) for cpus in (1, 8, 64) for load in (0.3, 0.9)
    }
    assert costs[64, 0.3] == pytest.approx(1)
    for load in (0.3, 0.9):
        assert costs[1, load] < costs[8, load] <= costs[64, load]
    assert all(costs[cpus, 0.9] < costs[cpus, 0.3] for cpus in (1, 8, 64))
