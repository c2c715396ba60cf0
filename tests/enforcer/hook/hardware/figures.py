"""What the kernel may say of a machine with two NUMA nodes."""

from hypothesis import strategies as st

from numakin.placement.model.live_usage import Live
from tests import machines

GIB, PAGE = 1 << 30, 2 << 20
HUGE = machines.HUGE
"""Two NUMA nodes of 8 CPUs and 32 GiB."""


KNOWN = Live({0: 8 * GIB}, {(0, PAGE): 64 * PAGE}, {0: 2000}, {0: 0.0})


figures = st.builds(
    Live,
    st.dictionaries(st.integers(0, 1), st.integers(0, 32 * GIB)),
    st.dictionaries(st.tuples(st.integers(0, 1), st.just(PAGE)), st.integers(0, 4).map(lambda some: some * GIB)),
    st.dictionaries(st.integers(0, 1), st.integers(0, 8000)),
    st.dictionaries(st.integers(0, 1), st.floats(0, 1)),
)
