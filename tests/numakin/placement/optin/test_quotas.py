"""What an operator's limits leave of what a namespace's pods ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.optin.options import Cpus, Memory, Move, OptIn, Policy, Pool, Scope, Span
from numakin.placement.optin.parsing import parse
from numakin.placement.optin.quotas import EXCLUSIVE_KEY, KEYS, KEYS_KEY, SIZE_KEY, UNLIMITED, Quota, read

ASKED = st.builds(
    OptIn,
    group=st.sampled_from(["", "shop/web"]),
    policy=st.sampled_from(Policy),
    scope=st.sampled_from(Scope),
    cpus=st.sampled_from(Cpus),
    memory=st.sampled_from(Memory),
    move=st.sampled_from(Move),
    size=st.integers(0, 20),
    pool=st.sampled_from(Pool),
    alone=st.booleans(),
    span=st.none() | st.sampled_from(Span),
)
QUOTAS = st.builds(
    Quota,
    st.none() | st.integers(0, 8),
    st.none() | st.integers(0, 20),
    st.none() | st.frozensets(st.sampled_from(KEYS)),
)


@given(ASKED, QUOTAS)
def test_what_is_allowed_stays_allowed_and_what_is_left_out_is_said(asked, quota):
    allowed, refused = quota.allowed(asked)
    assert quota.allowed(allowed) == (allowed, ())
    assert bool(refused) == (allowed != asked)
    assert allowed.group == asked.group


@given(ASKED)
def test_without_limits_all_is_allowed(asked):
    assert UNLIMITED.allowed(asked) == (asked, ())


def test_a_key_that_is_not_allowed_counts_as_not_there():
    pod = parse("shop", {"group.numakin.io": "web", "cpus.numakin.io": "exclusive", "policy.numakin.io": "restricted"})
    allowed, refused = Quota(keys=frozenset({"policy"})).allowed(pod)
    assert (allowed.cpus, allowed.policy) == (Cpus.SHARED, Policy.RESTRICTED)
    assert refused == ("cpus.numakin.io is not among the keys that its namespace may use",)


def test_what_katalyst_s_annotations_ask_for_is_limited_alike():
    """Reserved CPUs are the operator's, and a NUMA node of one's own is more than any number of CPUs there."""
    asked = OptIn("shop/web", pool=Pool.RESERVED, alone=True, memory=Memory.BIND)
    allowed, refused = Quota(exclusive_cpus=4, keys=frozenset({"policy"})).allowed(asked)
    assert allowed == OptIn("shop/web")
    assert len(refused) == 3


@pytest.mark.parametrize(
    ("keys", "alone", "why"),
    [
        ((), False, "NUMA nodes of its own are not for a namespace that may not choose its CPUs"),
        (("cpus", "memory"), True, None),
    ],
)
def test_numa_nodes_of_ones_own_are_for_who_may_choose_their_cpus(keys, alone, why):
    asked = OptIn("shop/web", alone=True)
    allowed, refused = Quota(keys=frozenset(keys)).allowed(asked)
    assert (allowed.alone, refused) == (alone, (why,) if why else ())


def test_a_group_that_announces_too_many_members_announces_none():
    allowed, refused = Quota(group_size=10).allowed(OptIn("shop/web", size=11))
    assert allowed.size == 0
    assert refused == ("size.numakin.io 11 is over 10, its namespace's largest",)
    assert Quota(group_size=10).allowed(OptIn("shop/web", size=10))[1] == ()


@pytest.mark.parametrize(
    ("annotations", "quota"),
    [
        ({}, UNLIMITED),
        ({"team": "a"}, UNLIMITED),
        ({EXCLUSIVE_KEY: "16", SIZE_KEY: "100"}, Quota(16, 100)),
        ({EXCLUSIVE_KEY: "0"}, Quota(0)),
        ({KEYS_KEY: "policy, scope"}, Quota(keys=frozenset({"policy", "scope"}))),
        ({KEYS_KEY: "none"}, Quota(keys=frozenset())),
    ],
)
def test_an_operator_s_annotations_are_read(annotations, quota):
    assert read(annotations) == (quota, ())


@pytest.mark.parametrize(
    ("key", "text", "least"),
    [
        (EXCLUSIVE_KEY, "-1", Quota(0)),
        (EXCLUSIVE_KEY, "8 CPUs", Quota(0)),
        (EXCLUSIVE_KEY, "9" * 5000, Quota(0)),
        (EXCLUSIVE_KEY, "٣", Quota(0)),
        (SIZE_KEY, "", Quota(group_size=0)),
        (KEYS_KEY, "", Quota(keys=frozenset())),
        (KEYS_KEY, "policy,cpu", Quota(keys=frozenset())),
    ],
)
def test_a_limit_that_can_t_be_read_counts_as_the_least_and_is_named(key, text, least):
    quota, (problem,) = read({key: text})
    assert quota == least
    assert problem.startswith(f"annotation {key}: ")
    assert len(problem) < 250


@given(st.dictionaries(st.sampled_from([EXCLUSIVE_KEY, SIZE_KEY, KEYS_KEY]), st.text()))
def test_no_text_is_more_than_a_limit(annotations):
    quota, problems = read(annotations)
    limits = {EXCLUSIVE_KEY: quota.exclusive_cpus, SIZE_KEY: quota.group_size, KEYS_KEY: quota.keys}
    assert {key for key, limit in limits.items() if limit is not None} == set(annotations)
    assert len(problems) <= len(annotations)
