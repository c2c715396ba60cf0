"""What a pod asks for by annotation: what is taken, and what is said, word for word, of what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.optin.options import Defaults
from numakin.placement.optin.parsing import (
    MOST_PROBLEMS,
    Cpus,
    Memory,
    Move,
    OptIn,
    Policy,
    Regroup,
    Scope,
    Span,
    opted_in,
    parse,
    problems,
)

KEYS = (
    "the keys group.numakin.io, policy.numakin.io, scope.numakin.io, cpus.numakin.io, memory.numakin.io, "
    "move.numakin.io, size.numakin.io, span.numakin.io, regroup.numakin.io"
)
NAME = "auto, or a name of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def test_the_groups_presence_is_the_opt_in():
    assert parse("shop", {}) is None
    assert parse("shop", {"cpus.numakin.io": "exclusive"}) is None
    assert parse("shop", {"group.numakin.io": "web"}) == OptIn("shop/web")


def test_the_defaults_are_the_gentlest():
    web = parse("shop", {"group.numakin.io": "web"})
    assert (web.policy, web.scope, web.cpus, web.memory, web.move, web.size) == (
        Policy.BEST_EFFORT,
        Scope.POD,
        Cpus.SHARED,
        Memory.AUTO,
        Move.CPUS,
        0,
    )


def test_an_auto_group_is_learned_later():
    web = parse("shop", {"group.numakin.io": "auto"})
    assert web.auto
    assert web.group == ""
    assert not problems("shop", {"group.numakin.io": "auto"})


def test_every_key_is_taken():
    everything = {
        "group.numakin.io": "web",
        "policy.numakin.io": "single-numa-node",
        "scope.numakin.io": "container",
        "cpus.numakin.io": "exclusive-cores",
        "memory.numakin.io": "bind",
        "move.numakin.io": "never",
        "size.numakin.io": "12",
        "span.numakin.io": "cache",
        "regroup.numakin.io": "evict-alone",
    }
    assert parse("shop", everything) == OptIn(
        "shop/web",
        Policy.SINGLE_NUMA_NODE,
        Scope.CONTAINER,
        Cpus.EXCLUSIVE_CORES,
        Memory.BIND,
        Move.NEVER,
        12,
        span=Span.CACHE,
        regroup=Regroup.EVICT_ALONE,
    )
    assert not problems("shop", everything)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("group.numakin.io", "", NAME),
        ("group.numakin.io", "-web", NAME),
        ("group.numakin.io", "a/b", NAME),
        ("group.numakin.io", "x" * 64, NAME),
        ("group.numakin.io", "wéb", NAME),
        ("policy.numakin.io", "strict", "best-effort, restricted, single-numa-node, none"),
        ("policy.numakin.io", "Restricted", "best-effort, restricted, single-numa-node, none"),
        ("scope.numakin.io", "node", "pod, container"),
        ("cpus.numakin.io", "2", "shared, shared-stable, exclusive, exclusive-cores"),
        ("cpus.numakin.io", " shared", "shared, shared-stable, exclusive, exclusive-cores"),
        ("memory.numakin.io", "strict", "auto, bind, prefer"),
        ("move.numakin.io", "yes", "cpus, never, cpus-and-memory"),
        ("span.numakin.io", "socket", "numa, cache"),
        ("regroup.numakin.io", "yes", "never, evict, evict-alone"),
        ("size.numakin.io", "0", "an integer from 1 to 10000"),
        ("size.numakin.io", "10001", "an integer from 1 to 10000"),
        ("size.numakin.io", "-3", "an integer from 1 to 10000"),
        ("size.numakin.io", "three", "an integer from 1 to 10000"),
        ("size.numakin.io", "٣", "an integer from 1 to 10000"),
        ("cpu.numakin.io", "exclusive", KEYS),
        ("numakin.io", "web", KEYS),
        ("numakin.io/group", "web", KEYS),
        ("cpus.numakin.io/web", "exclusive", KEYS),
        ("cpus.numakin.io/container.", "exclusive", KEYS),
    ],
)
def test_a_bad_annotation_is_reported_word_for_word_and_counts_as_absent(key, value, allowed):
    annotations = {"group.numakin.io": "web", key: value}
    opt_in = parse("shop", annotations)
    shown = value if len(value) <= 64 else value[:61] + "..."
    assert problems("shop", annotations).lines == (f"annotation {key}: {shown!r} is not allowed; allowed: {allowed}",)
    assert opt_in == (None if key == "group.numakin.io" else OptIn("shop/web"))


def test_the_container_beats_the_pod_and_the_pod_beats_the_plain_key():
    annotations = {
        "group.numakin.io": "web",
        "cpus.numakin.io": "shared",
        "cpus.numakin.io/pod": "exclusive",
        "cpus.numakin.io/container.db": "exclusive-cores",
    }
    assert parse("shop", annotations, "db").cpus is Cpus.EXCLUSIVE_CORES
    assert parse("shop", annotations, "db").cpus_named
    assert not parse("shop", annotations, "other").cpus_named
    assert parse("shop", annotations, "other").cpus is Cpus.EXCLUSIVE
    assert parse("shop", annotations).cpus is Cpus.EXCLUSIVE


STRICT = Defaults(Policy.RESTRICTED, size=9)


@pytest.mark.parametrize(
    ("annotations", "policy", "size"),
    [
        ({}, Policy.RESTRICTED, 9),
        ({"policy.numakin.io": "best-effort"}, Policy.BEST_EFFORT, 9),
        ({"size.numakin.io/pod": "3"}, Policy.RESTRICTED, 3),
        ({"size.numakin.io": "many"}, Policy.RESTRICTED, 9),
    ],
)
def test_what_the_group_says_goes_where_the_pod_is_silent(annotations, policy, size):
    result = parse("shop", {"group.numakin.io": "web", **annotations}, "", {"shop/web": STRICT}.__getitem__)
    assert (result.policy, result.size) == (policy, size)


def test_a_group_says_nothing_to_those_who_are_not_its_members():
    assert parse("shop", {"policy.numakin.io": "none"}, "", lambda _group: STRICT) is None
    auto = parse("shop", {"group.numakin.io": "auto"}, "", {"": STRICT}.__getitem__)
    assert auto.size == 9


def test_one_container_alone_may_opt_in():
    annotations = {"group.numakin.io/container.db": "web"}
    assert parse("shop", annotations, "db") == OptIn("shop/web")
    assert parse("shop", annotations, "log") is None


def test_a_bad_value_leaves_the_weaker_key_standing():
    annotations = {"group.numakin.io": "web", "cpus.numakin.io/container.db": "own", "cpus.numakin.io": "exclusive"}
    assert parse("shop", annotations, "db").cpus is Cpus.EXCLUSIVE
    assert [entry.key for entry in problems("shop", annotations, ["db"]).named] == ["cpus.numakin.io/container.db"]


def test_problems_come_in_the_order_of_their_keys():
    annotations = {"size.numakin.io": "x", "group.numakin.io": "web", "cpus.numakin.io": "x", "z.numakin.io": "x"}
    named = [entry.key for entry in problems("shop", annotations).named]
    assert named == ["cpus.numakin.io", "size.numakin.io", "z.numakin.io"]


def test_other_peoples_annotations_are_none_of_ours():
    annotations = {"notnumakin.io": "x", "numakin.io.example.com": "x", "example.com/group.numakin.io": "x"}
    assert parse("shop", annotations) is None
    assert not problems("shop", annotations)
    assert not opted_in(annotations)


def test_a_very_long_value_is_shown_shortened():
    (line,) = problems("shop", {"group.numakin.io": "web", "cpus.numakin.io": "x" * 9000}).lines
    assert len(line) < 200


def test_of_many_bad_annotations_eight_are_named_those_of_known_keys_first():
    annotations = {f"a{number:03}.numakin.io": "x" for number in range(100)}
    annotations |= {"group.numakin.io": "web", "size.numakin.io": "x", "cpus.numakin.io/container.db": "x"}
    result = problems("shop", annotations, ["db", "log"])
    assert [entry.key for entry in result.named] == [
        *(f"a{number:03}.numakin.io" for number in range(6)),
        "cpus.numakin.io/container.db",
        "size.numakin.io",
    ]
    assert (result.count, result.lines[-1]) == (102, "and 94 more annotations that are not allowed")


class CountedLookups(dict):
    """Annotations that can be looked up, and that nobody goes through."""

    def __init__(self, annotations):
        super().__init__(annotations)
        self.lookups = 0

    def __contains__(self, key):
        self.lookups += 1
        return super().__contains__(key)

    def __iter__(self):
        raise AssertionError("all annotations are gone through")

    keys = items = values = __iter__


def test_what_is_asked_for_costs_the_same_whatever_else_is_annotated():
    few = CountedLookups({"group.numakin.io": "web"})
    many = CountedLookups({"group.numakin.io": "web"} | {f"a{number}.numakin.io": "x" for number in range(17_000)})
    assert parse("shop", few, "db") == parse("shop", many, "db") == OptIn("shop/web")
    assert few.lookups == many.lookups


@given(st.dictionaries(st.text(max_size=40) | st.sampled_from(["group.numakin.io", "cpus.numakin.io"]), st.text()))
def test_no_annotation_can_raise(annotations):
    opt_in, result = parse("shop", annotations), problems("shop", annotations)
    assert opt_in is None or opt_in.group.startswith("shop/") or opt_in.auto
    assert all(entry.key in annotations for entry in result.named)
    assert len(result.named) <= MOST_PROBLEMS
    assert opt_in is None or opted_in(annotations)
