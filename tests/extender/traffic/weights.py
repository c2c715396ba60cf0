"""Any traffic between workloads."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

Weights = dict[tuple[str, str], float]


def weights_between(ends: Sequence[str], others: Sequence[str]) -> st.SearchStrategy[Weights]:
    pairs = st.tuples(st.sampled_from(ends), st.sampled_from(others)).filter(lambda pair: pair[0] != pair[1])
    return st.dictionaries(pairs.map(lambda pair: (min(pair), max(pair))), st.floats(0.01, 1e9), max_size=15)
