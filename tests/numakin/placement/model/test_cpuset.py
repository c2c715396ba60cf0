"""Sets of ids: the kernel's list format in and out, and the laws of sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.model.cpuset import LONGEST_LIST, CpuSet, NumaSet
from numakin.placement.model.errors import BadIdList

ids = st.sets(st.integers(0, 300))


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("", []),
        ("\n", []),
        ("0", [0]),
        ("0-3,8\n", [0, 1, 2, 3, 8]),
        ("8,0-3", [0, 1, 2, 3, 8]),
        ("0, 2", [0, 2]),
        ("5-5", [5]),
        ("0-7:1/2", [0, 2, 4, 6]),
        ("0-9:2/4", [0, 1, 4, 5, 8, 9]),
        ("1-6:3/3", [1, 2, 3, 4, 5, 6]),
        ("16383", [16383]),
    ],
)
def test_the_kernels_list_format_is_read(text, members):
    assert list(CpuSet.parse(text)) == members


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x", "'x' is not a list of ids: 'x' is neither an id nor a range"),
        ("0,,2", "'0,,2' is not a list of ids: '' is neither an id nor a range"),
        ("-1", "'-1' is not a list of ids: '-1' is neither an id nor a range"),
        ("3-1", "'3-1' is not a list of ids: 3-1 runs backwards"),
        ("0-", "'0-' is not a list of ids: '0-' is neither an id nor a range"),
        ("16384", "'16384' holds an id over 16383"),
        ("0-99999999999", "'0-99999999999' holds an id over 16383"),
        ("0-7:3/2", "'0-7:3/2' is not a list of ids: 0-7:3/2 takes 3 of every 2"),
        ("0-7:0/2", "'0-7:0/2' is not a list of ids: 0-7:0/2 takes 0 of every 2"),
        ("٣", "'٣' is not a list of ids: '٣' is neither an id nor a range"),
        ("a" * 90, f"'{'a' * 57}...' is not a list of ids: '{'a' * 57}...' is neither an id nor a range"),
        ("," * (LONGEST_LIST + 1), "a list of ids has at most 65536 characters, not 65537"),
    ],
)
def test_what_is_not_a_list_is_refused_word_for_word(text, says):
    with pytest.raises(BadIdList) as refused:
        CpuSet.parse(text)
    assert str(refused.value) == says


@pytest.mark.parametrize("text", ["0-16383:2/3", "0-16383:1/2", "0-16383:3/4", "0-16383"])
def test_whatever_is_read_can_be_written_and_read_again(text):
    cpus = CpuSet.parse(text)
    assert len(str(cpus)) <= LONGEST_LIST
    assert CpuSet.parse(str(cpus)) == cpus


@pytest.mark.parametrize("bad", [-1, 16384])
def test_an_id_out_of_bounds_is_refused(bad):
    with pytest.raises(BadIdList, match=rf"id {bad} is not within 0\.\.16383"):
        CpuSet.of([bad])


@given(ids)
def test_what_is_written_is_read_back(members):
    assert CpuSet.parse(str(CpuSet.of(members))) == CpuSet.of(members)


@given(ids)
def test_members_come_ascending_and_each_once(members):
    assert list(CpuSet.of(members)) == sorted(members)
    assert len(CpuSet.of(members)) == len(members)


@given(ids, ids)
def test_it_is_a_set(a, b):
    left, right = CpuSet.of(a), CpuSet.of(b)
    assert set(left | right) == a | b
    assert set(left & right) == a & b
    assert set(left - right) == a - b
    assert (left <= right) == (a <= b)
    assert left.isdisjoint(right) == a.isdisjoint(b)
    assert all((number in left) == (number in a) for number in range(301))


@given(st.integers(0, 60), st.integers(0, 200), st.integers(1, 20), st.integers(1, 20))
def test_a_strided_range_takes_the_first_of_every_group(first, length, used, group):
    used = min(used, group)
    expected = [number for number in range(first, first + length + 1) if (number - first) % group < used]
    assert list(CpuSet.parse(f"{first}-{first + length}:{used}/{group}")) == expected


def test_runs_are_joined_when_written():
    assert str(CpuSet.of([3, 0, 1, 2, 8, 10, 11])) == "0-3,8,10-11"
    assert repr(NumaSet.of([0, 1])) == "NumaSet('0-1')"


def test_the_empty_set_has_no_lowest():
    with pytest.raises(ValueError, match="the empty set has no lowest id"):
        _ = CpuSet().lowest
    assert CpuSet.parse("9,4").lowest == 4


def test_cpus_and_numa_nodes_are_not_mistaken_for_each_other():
    assert CpuSet.of([1]) != NumaSet.of([1])
