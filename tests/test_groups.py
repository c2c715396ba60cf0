"""Tests that share something are one process's, those of each runtime are side by side, and the longest come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.groups import LONGEST_FIRST, group, rank

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("beginning", [beginning for row in LONGEST_FIRST for beginning in row])
def test_what_is_listed_is_there(beginning: str) -> None:
    assert list(ROOT.glob(f"{beginning}*"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tests/cluster/test_priors.py::test_it", "tests/cluster/test_tokens.py::test_it"),
        ("tests/web/test_map.py::test_it[dark]", "tests/web/test_token.py::test_it"),
        ("tests/e2e/test_lab.py::test_it[containerd-sid]", "tests/e2e/test_relief.py::test_it[containerd-sid-late]"),
        ("tests/e2e/test_lab.py::test_it[crio-1.37.0]", "tests/e2e/test_relief.py::test_it[late-crio-1.37.0]"),
        ("tests/enforcer/test_moves.py::test_it", "tests/enforcer/test_moves.py::TestThat::test_that"),
        (
            "tests/enforcer/nri/test_it.py::test_it[containerd-2.1.9]",
            "tests/enforcer/nri/test_it.py::test_it[crio-1.37]",
        ),
    ],
)
def test_what_shares_something_is_one_processs(one: str, other: str) -> None:
    assert group(one) == group(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tests/e2e/test_lab.py::test_it[containerd-sid]", "tests/e2e/test_lab.py::test_it[containerd-trixie]"),
        ("tests/e2e/test_lab.py::test_it[containerd-sid]", "tests/e2e/test_bypass.py::test_it[containerd-sid]"),
        ("tests/extender/test_tls.py::test_it", "tests/extender/test_cluster.py::test_it"),
        ("tests/e2e/test_numa_chain.py::test_it", "tests/e2e/test_numa_node.py::test_it"),
        ("tests/cluster/test_priors.py::test_it", "tests/cluster/test_gangs.py::test_it"),
    ],
)
def test_what_shares_nothing_may_be_several_processes(one: str, other: str) -> None:
    assert group(one) != group(other)


def test_a_file_that_starts_a_cluster_of_its_own_is_beside_the_shared_one() -> None:
    own = [path for path in (ROOT / "tests/cluster").glob("test_*.py") if "with up(" in path.read_text()]
    groups = {group(f"{path.relative_to(ROOT)}::test_it") for path in own}
    assert len(groups) == 1
    assert groups != {group("tests/cluster/test_priors.py::test_it")}


def test_what_takes_longest_comes_first() -> None:
    names = ["tests/test_skips.py::test_it", "tests/e2e/test_lab.py::test_it", "tests/cluster/test_priors.py::test_it"]
    assert sorted(names, key=rank) == names[::-1]
