"""Which names of Services a container's environment and arguments may refer to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.traffic.mentions import MOST_CHARACTERS, MOST_MENTIONS, Mentions, mention, mentions


def named(text: str, *names: str) -> list[str]:
    """Those of the names that a text in namespace shop refers to."""
    result = mentions("shop", [text])
    return [name for name in names if mention(name) in result.names]


@pytest.mark.parametrize(
    "text",
    [
        "cart", "cart:7070", "cart.shop", "cart.shop.svc", "cart.shop.svc.cluster.local:7070", "http://cart/v1?x=1",
        "redis://user:secret@cart:6379/0", "--upstream=cart", "a:1,cart:2", "cart-0.cart", "cart-0.cart.shop.svc",
        "jdbc:mysql://cart:3306/db", "until nc -z cart 6379; do sleep 1; done", '{"address": "cart:7070"}',
    ],
)  # fmt: skip
def test_a_name_counts_wherever_a_host_may_stand(text):
    assert named(text, "cart") == ["cart"]


@pytest.mark.parametrize(
    "text", ["", "cart.other.svc", "cart.example.com", "mycart", "cart2:80", "Cart", "cart_port", "x" * 64]
)
def test_what_is_another_name_does_not(text):
    assert named(text, "cart") == []


@pytest.mark.parametrize(
    "texts",
    [[" " * MOST_CHARACTERS + "cart"], [" " * MOST_CHARACTERS, "cart"], [" " * MOST_CHARACTERS, "", "cart"]],
    ids=["in one text", "in the next", "after an empty one"],
)
def test_what_is_beyond_the_characters_is_not_read_and_that_is_said(texts):
    assert mentions("shop", texts) == Mentions(over="most_characters")


def test_names_beyond_the_most_do_not_count_and_that_is_said():
    many = " ".join(f"n{number}" for number in range(2 * MOST_MENTIONS))
    result = mentions("shop", [many, many])
    assert len(result.names) == MOST_MENTIONS
    assert result.over == "most_mentions"


def test_what_is_just_within_the_bounds_is_read_whole():
    within = " ".join(f"n{number}" for number in range(MOST_MENTIONS))
    assert mentions("shop", [within, within]) == Mentions(frozenset(mention(name) for name in within.split()))
    assert mentions("shop", [" " * (MOST_CHARACTERS - 4) + "cart", ""]) == Mentions(frozenset({mention("cart")}))


@given(st.lists(st.text(max_size=80), max_size=6))
def test_any_text_is_read_and_none_is_kept(texts):
    assert all(isinstance(candidate, int) for candidate in mentions("shop", texts).names)
