"""The sample of faults: each is one small change that leaves a module one, and the same seed draws the same ones."""

from __future__ import annotations

import ast

import pytest

from tests.mutation import ROOT, faults_of, mirrors, sample

SOURCE = '''
def taken(pods: list[int] = [], *, most: int = 3) -> bool:
    """Docstrings stay."""
    log.info("not this 1", pods=2)
    count(pods)
    if not pods and len(pods) < most:
        raise ValueError(f"nor this {1 + 1}")
    return max(pods) in pods
'''


def test_what_tests_can_see_is_changed_and_nothing_else() -> None:
    found = {(fault.before, fault.after) for fault in faults_of("any.py", SOURCE)}
    assert found == {
        ("3", "4"),
        ("count(pods)", "pass"),
        ("not pods and len(pods) < most", "(not pods or len(pods) < most)"),
        ("not pods", "(pods)"),
        ("len(pods) < most", "(len(pods) <= most)"),
        ("max(pods) in pods", "(max(pods) not in pods)"),
        ("max(pods)", "(min(pods))"),
    }


def test_each_fault_leaves_a_module_that_can_be_read() -> None:
    for fault in sample(60, seed=1):
        text = (ROOT / fault.path).read_text()
        changed = fault.put_into(text)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), fault


def test_a_seed_draws_the_same_faults_each_time_and_another_draws_others() -> None:
    assert sample(12, seed=7) == sample(12, seed=7) != sample(12, seed=8)


@pytest.mark.parametrize(
    ("module", "tests"),
    [
        ("numakin/placement/decide/memory.py", [["tests/numakin/placement/decide/test_memory.py"], ["tests/numakin/placement/decide"], ["tests/numakin/placement"]]),
        ("extender/scoring/single.py", [["tests/extender/scoring"]]),
    ],
)  # fmt: skip
def test_the_tests_that_mirror_a_module_are_tried_nearest_first(module: str, tests: list[list[str]]) -> None:
    assert mirrors(module) == tests
