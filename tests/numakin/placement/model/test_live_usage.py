"""Live figures travel as news; whoever hears all of it holds the same figures."""

from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.model.live_usage import NOTHING, Live

ids = st.integers(0, 3)
amounts = st.integers(0, 4)
figures = st.builds(
    Live,
    st.dictionaries(ids, amounts),
    st.dictionaries(st.tuples(ids, st.sampled_from([1 << 21, 1 << 30])), amounts),
    st.dictionaries(ids, amounts),
    st.dictionaries(ids, st.floats(0, 1)),
    st.dictionaries(ids, st.booleans()),
)


@given(figures, figures)
def test_the_news_lead_from_one_to_the_other(before: Live, now: Live) -> None:
    after = before.after(now)
    assert before.after(after.since(before)) == after


@given(figures)
def test_what_has_not_changed_is_no_news(live: Live) -> None:
    assert live.since(live) == NOTHING


@given(figures, figures)
def test_what_is_told_no_more_stays_as_it_was(before: Live, now: Live) -> None:
    after = before.after(now)
    assert {**before.free_memory, **now.free_memory} == after.free_memory
    assert before.stalled.keys() | now.stalled.keys() == after.stalled.keys()
