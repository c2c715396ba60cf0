"""Groups found from traffic: the planted ones are found, they last, and each membership says why."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.traffic.communities import LEAST, partition
from extender.traffic.memberships import NO_GROUPS, Membership, Partition


def wl(name: str) -> str:
    return f"shop/Deployment/{name}"


def talk(**weights: float) -> dict[tuple[str, str], float]:
    """cart_redis=5 is five between cart and redis."""
    return {tuple(sorted(map(wl, pair.split("_")))): weight for pair, weight in weights.items()}


def everybody(weights) -> set[str]:
    return {end for pair in weights for end in pair}


def found(weights, *, named=None, previous=NO_GROUPS) -> Partition:
    return partition(weights, everybody(weights), named or {}, previous)


def planted(groups: int, size: int, inside: float, outside: float, seed: int):
    """Groups whose members talk `inside` with each other, and everybody `outside` with some of the others."""
    random = Random(seed)
    names = [wl(f"g{group}-{at}") for group in range(groups) for at in range(size)]
    weights = {}
    for at, name in enumerate(names):
        for before, other in enumerate(names[:at]):
            same = at // size == before // size
            if same or random.random() < 0.3:
                weights[other, name] = (inside if same else outside) * random.uniform(0.5, 1.5)
    return {frozenset(names[at * size : (at + 1) * size]) for at in range(groups)}, weights


def groups_of(first: Partition) -> set[frozenset[str]]:
    return {frozenset(members) for members in first.groups().values()}


@pytest.mark.parametrize(("groups", "size"), [(2, 2), (2, 6), (5, 4), (12, 8)])
def test_planted_groups_are_found(groups, size):
    expected, weights = planted(groups, size, inside=10, outside=0.2, seed=groups)
    assert groups_of(found(weights)) == expected


def test_who_talks_with_nobody_is_in_no_group():
    weights = talk(cart_redis=5)
    made = partition(weights, {*everybody(weights), wl("alone")}, {})
    assert set(made.members) == {wl("cart"), wl("redis")}


def test_nothing_is_found_in_nothing():
    assert partition({}, (), {}) == NO_GROUPS


def test_a_group_is_named_after_its_heaviest_workload():
    assert list(found(talk(cart_redis=9, cart_web=5)).groups()) == ["shop/auto-cart"]


@pytest.mark.parametrize("name", ["x" * 80, "x" * 58])
def test_a_group_s_name_is_never_too_long(name):
    (group,) = found(talk(**{f"{name}_y": 1.0, f"{name}_z": 1.0})).groups()
    assert len(group.removeprefix("shop/")) <= 63
    assert group.startswith("shop/auto-xxx")


def test_a_membership_says_why_in_words():
    weights = talk(
        checkout_cart=30, checkout_pay=20, checkout_ship=12, cart_pay=9, cart_ship=9, pay_ship=9,
        a_b=90, a_c=90, b_c=90, checkout_a=38,
    )  # fmt: skip
    made = found(weights)
    assert (
        made.members[wl("checkout")].reason == "exchanges 62 % of its traffic within its namespace with cart, pay, ship"
    )
    assert made.members[wl("a")].reason == "exchanges 83 % of its traffic within its namespace with b, c"


def test_a_long_reason_counts_the_rest():
    first = Membership("shop/auto-a", 0.998, (wl("a"), wl("b"), wl("c")), 5)
    assert first.reason == "exchanges 100 % of its traffic within its namespace with a, b, c and 2 more"


def test_who_talks_a_little_with_everybody_is_a_member_of_nothing():
    """A scraper of metrics exchanges at most a small part of its traffic with any one group."""
    expected, weights = planted(15, 4, inside=100, outside=0, seed=1)
    scraped = {(wl("a-scraper"), entry): 1.0 for group in expected for entry in group}
    made = found({**weights, **scraped})
    assert groups_of(made) == expected
    assert min(member.share for member in made.members.values()) >= LEAST


def test_workloads_join_a_group_that_somebody_named():
    weights = talk(cart_redis=9, redis_web=5, a_b=8)
    made = found(weights, named={wl("cart"): "shop/orders"})
    assert made.members[wl("redis")].group == "shop/orders"
    assert made.members[wl("redis")].partners == (wl("cart"), wl("web"))
    assert wl("cart") not in made.members
    assert set(made.groups()) == {"shop/orders", "shop/auto-a"}


def test_groups_that_users_named_stay_apart():
    weights = talk(cart_redis=9, a_b=8, cart_a=50)
    made = found(weights, named={wl("cart"): "shop/one", wl("a"): "shop/two"})
    assert made.groups() == {"shop/one": [wl("redis")], "shop/two": [wl("b")]}


def test_a_found_group_never_takes_a_name_that_a_user_gave():
    weights = talk(cart_redis=9, x_y=1)
    made = found(weights, named={wl("x"): "shop/auto-cart", wl("y"): "shop/auto-cart"})
    (group,) = made.groups()
    assert group.startswith("shop/auto-cart-")


BEFORE = talk(a_b=10, a_c=10, b_c=10, x_y=10, x_z=10, y_z=10, c_x=1)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (BEFORE, "a b c | x y z"),
        (talk(a_b=10, a_c=4, b_c=4, x_y=10, x_z=10, y_z=10, c_x=4, c_y=4, c_z=1), "a b c | x y z"),
        (talk(a_b=10, a_c=1, b_c=1, x_y=10, x_z=10, y_z=10, c_x=9, c_y=9, c_z=9), "a b | c x y z"),
        (talk(a_b=10, b_c=10, a_c=10, x_y=10, c_x=1, new_a=3, new_x=1), "a b c new | x y"),
        (talk(a_b=10, x_y=10, c_z=10), "a b | c z | x y"),
        (talk(a_b=10, a_c=10, b_c=10, x_y=10, x_z=10, y_z=10, a_x=30, b_y=30, c_z=30), "a x | b y | c z"),
    ],
    ids=["no change", "a little", "c moved", "one more", "fell apart", "all anew"],
)
def test_a_workload_changes_its_group_only_when_it_pays(now, expected):
    made = found(now, previous=found(BEFORE))
    named = {frozenset(map(wl, part.split())) for part in expected.split(" | ")}
    assert groups_of(made) == named


def test_a_group_keeps_its_name_when_another_becomes_its_heaviest():
    first = found(talk(a_b=10, a_c=10, b_c=5, x_y=40))
    second = found(talk(a_b=10, a_c=10, b_c=30, b_d=20, c_d=10, x_y=40), previous=first)
    assert list(first.groups()) == list(second.groups()) == ["shop/auto-a", "shop/auto-x"]
    assert second.members[wl("d")].group == "shop/auto-a"


def test_of_a_group_that_falls_apart_the_heavier_part_keeps_the_name():
    first = found(talk(a_b=10, b_c=10, c_d=10, x_y=40))
    second = found(talk(a_b=1, c_d=10, x_y=40), previous=first)
    assert second.members[wl("c")].group == first.members[wl("c")].group
    assert second.members[wl("a")].group != first.members[wl("a")].group


NAMES = [wl(name) for name in "abcdefgh"]
traffic = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] < pair[1]),
    st.floats(0.01, 100),
    max_size=20,
)


@given(traffic, st.randoms(use_true_random=False))
def test_the_same_traffic_gives_the_same_partition(weights, random):
    items = list(weights.items())
    random.shuffle(items)
    assert partition(dict(items), sorted(NAMES, reverse=True), {}) == partition(weights, NAMES, {})


@given(traffic, traffic)
def test_a_partition_settles(before, after):
    """The same traffic again moves nobody, wherever it began."""
    first = partition(after, NAMES, {}, partition(before, NAMES, {}))
    for _ in range(3):
        first, second = partition(after, NAMES, {}, first), first
    assert groups_of(partition(after, NAMES, {}, first)) == groups_of(first) == groups_of(second)


@given(st.integers(2, 6), st.integers(3, 6), st.integers(0, 1000))
def test_noise_moves_nobody(groups, size, seed):
    _, weights = planted(groups, size, inside=10, outside=0.2, seed=seed)
    random = Random(seed + 1)
    noisy = {pair: weight * random.uniform(0.7, 1.3) for pair, weight in weights.items()}
    first = found(weights)
    again = found(noisy, previous=first)
    assert again.groups() == first.groups()


@given(traffic)
def test_every_member_has_a_share_and_a_partner_in_its_group(weights):
    made = partition(weights, NAMES, {wl("a"): "shop/orders"})
    for entry in made.members.values():
        assert LEAST <= entry.share <= 1 + 1e-9
        groups = {wl("a"): "shop/orders"} | {name: member.group for name, member in made.members.items()}
        assert entry.partners
        assert all(groups[peer] == entry.group for peer in entry.partners)


def test_who_talks_mostly_with_a_stranger_of_the_group_is_none_of_it_either():
    """d is called a's by little, talks mostly with b, and is all that c has."""
    weights = {(wl("a"), wl("b")): 25.0, (wl("a"), wl("d")): 1.0, (wl("b"), wl("d")): 9.0, (wl("c"), wl("d")): 1.0}
    made = partition(weights, NAMES, {wl("a"): "shop/orders"})
    for member in made.members.values():
        assert all(peer == wl("a") or peer in made.members for peer in member.partners)
