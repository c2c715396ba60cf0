"""No input makes a parser raise what it does not document, or break a promise: a fixed sample of `make fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz.mutation import mutated
from tests.fuzz.target import BrokenPromise, Target, must
from tests.fuzz.targets import TARGETS

EXAMPLES = 150


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_mutated_input_is_taken_or_refused_as_documented(target: Target) -> None:
    corpus = target.corpus()
    for data in [b"", *corpus, *mutated(corpus, EXAMPLES)]:
        try:
            target.run(data)
        except Exception as error:  # noqa: BLE001 - whatever it is, the input belongs in the message
            pytest.fail(f"{target.name}: {type(error).__name__}: {error}\ninput: {data[:2000]!r}")


def test_a_broken_promise_is_seen() -> None:
    with pytest.raises(BrokenPromise, match="one is two"):
        must(1 == 2, "one is two")
