"""What an operator sets on a Namespace object."""

from __future__ import annotations

from numakin.placement.namespaces import NOTHING, Namespaces, NamespaceTerms, read
from numakin.placement.optin.quotas import Quota


def test_settings_are_read_from_annotations():
    annotations = {"numakin.io/affinity-with": "shop,web", "numakin.io/max-exclusive-cpus": "8", "team": "x"}
    assert read(annotations) == (NamespaceTerms(frozenset({"shop", "web"}), Quota(8)), ())
    assert read({"team": "x"}) == (NOTHING, ())


def test_what_is_not_taken_is_named():
    settings, problems = read({"numakin.io/affinity-with": "shop,No One", "numakin.io/max-group-size": "many"})
    assert settings == NamespaceTerms(frozenset({"shop"}), Quota(group_size=0))
    assert problems == (
        (
            "annotation numakin.io/max-group-size: 'many' is not allowed, and counts as the least; "
            "allowed: a whole number up to 10000"
        ),
        (
            "annotation numakin.io/affinity-with: 'No One' is left out; "
            "allowed: * or at most 10 namespaces with commas between"
        ),
    )


def test_each_half_gets_its_part():
    both = Namespaces(
        {"a": NamespaceTerms(frozenset({"b"})), "b": NamespaceTerms(frozenset({"a"}), Quota(0)), "c": NOTHING}
    )
    assert both.tenancy.together("a", "b")
    assert both.quotas == {"b": Quota(0)}
