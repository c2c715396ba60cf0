"""Workloads that NetworkPolicies let talk to each other are expected to, before any traffic; the policies are JSON as the
API server sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.graphs.online_boutique import NAMED
from extender.state.pods import Changes, ServiceRow
from extender.traffic import priors as module
from extender.traffic.permitted import PERMITTED
from extender.traffic.priors import FADED, HALF_LIFE_S
from numakin.placement.namespaces import Namespaces, NamespaceTerms
from tests.extender.traffic.permitting import EVERYBODY, SHOP, WEAK, app, edges, of, pod, policy, priors, where


@pytest.mark.parametrize(
    "row",
    [
        policy(of(app="cart"), ingress=[{"from": [app("web")]}]),
        policy(of(app="cart"), policyTypes=["Ingress"], ingress=[{"from": [app("web")], "ports": [{"port": 7070}]}]),
        policy(of(app="web"), policyTypes=["Egress"], egress=[{"to": [app("cart")]}]),
        policy(of(app="web"), egress=[{"to": [app("cart")]}]),
        policy(of(app="cart"), ingress=[EVERYBODY, {"from": [{"podSelector": EVERYBODY}, app("web")]}]),
        policy(where("app", "In", "cart", "gone"), ingress=[{"from": [{"podSelector": where("app", "In", "web")}]}]),
    ],
    ids=["ingress", "with a port", "egress", "types left out", "beside everybody", "expressions"],
)
def test_the_two_ends_of_a_rule_are_expected_to_talk_half_as_much_as_who_names_a_service(row):
    assert edges(priors(SHOP, row), SHOP) == {("cart", "web"): WEAK}


@pytest.mark.parametrize(
    "row",
    [
        policy(EVERYBODY, ingress=[{"from": [app("web")]}]),
        policy(of(app="cart"), ingress=[EVERYBODY]),
        policy(of(app="cart"), ingress=[{"from": []}]),
        policy(of(app="cart"), ingress=[{"from": [{"podSelector": EVERYBODY}]}]),
        policy(of(app="cart"), ingress=[{"from": [{"namespaceSelector": EVERYBODY}]}]),
        policy(of(app="cart"), ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]),
        policy(of(app="cart")),
        policy(of(app="cart"), policyTypes=["Egress"], ingress=[{"from": [app("web")]}]),
        policy(of(app="web"), policyTypes=["Ingress"], egress=[{"to": [app("cart")]}]),
        policy(of(app="cart"), ingress=[{"from": [app("cart")]}]),
        policy(of(app="cart"), namespace="bank", ingress=[{"from": [app("web")]}]),
        policy(where("app", "NotIn", "web"), ingress=[{"from": [app("web")]}]),
        policy(where("app", "DoesNotExist"), ingress=[{"from": [app("web")]}]),
        policy(where("app", "Near", "cart"), ingress=[{"from": [app("web")]}]),
    ],
    ids=[
        "all pods selected", "everybody may", "an empty from", "each pod of the namespace", "each namespace", "addresses",
        "nobody may", "not for ingress", "not for egress", "itself", "of another namespace", "all but one",
        "all without a label", "an unknown operator",
    ],
)  # fmt: skip
def test_what_shows_no_pair_gives_none(row):
    assert edges(priors(SHOP, row), SHOP) == {}


def test_expressions_narrow_what_labels_select():
    pods = (pod("web"), pod("cart", tier="db", old=""), pod("redis", tier="db"))
    selector = of(tier="db") | where("old", "DoesNotExist")
    row = policy(selector, ingress=[{"from": [app("web")]}])
    assert edges(priors(pods, row), pods) == {("redis", "web"): WEAK}
    row = policy(where("old", "Exists"), ingress=[{"from": [app("web")]}])
    assert edges(priors(pods, row), pods) == {("cart", "web"): WEAK}


def test_the_policies_of_a_published_application_are_its_calls():
    """Online Boutique's own: one for each service that is called, its callers in it; egress and the frontend's ingress are
    for everybody, so that who calls the frontend is not known.
    """
    pods = tuple(pod(name) for name in sorted({end for call in NAMED for end in call}))
    rows = [policy(EVERYBODY, name="deny-all", policyTypes=["Ingress", "Egress"])]
    for server in sorted({target for _, target in NAMED}):
        clients = [{"from": [app(source) for source, target in NAMED if target == server]}]
        ingress = [EVERYBODY] if server == "frontend" else clients
        types = ["Ingress", "Egress"]
        rows.append(policy(of(app=server), name=server, policyTypes=types, ingress=ingress, egress=[EVERYBODY]))
    expected = {(min(call), max(call)) for call in NAMED if call[1] != "frontend"}
    assert set(edges(priors(pods, *rows), pods)) == expected


def test_servers_that_one_rule_names_share_what_is_expected_of_each_client():
    pods = (pod("web"), pod("mail"), pod("a", tier="db"), pod("b", tier="db"))
    clients = [{"from": [app("web"), app("mail")]}]
    weights = edges(priors(pods, policy(of(tier="db"), ingress=clients)), pods)
    assert weights == dict.fromkeys((("a", "web"), ("b", "web"), ("a", "mail"), ("b", "mail")), WEAK / 2)


def test_a_service_that_is_named_counts_more_than_the_policy_that_permits_it():
    pods = (pod("web", names="cart:80"), pod("cart"))
    expected = priors(pods, policy(of(app="cart"), ingress=[{"from": [app("web")]}]))
    expected.services(Changes((ServiceRow("shop", "cart", {"app": "cart"}),)))
    assert edges(expected, pods) == {("cart", "web"): WEAK / PERMITTED}


def test_it_fades_as_what_else_is_expected():
    expected = priors(SHOP, policy(of(app="redis"), ingress=[{"from": [app("cart")]}]))
    web, cart, redis, other = (row.workload for row in SHOP)
    seen = {(cart, web): 10.0, (other, redis): 10.0}
    first = edges(expected, SHOP, seen, 0.0)["cart", "redis"]
    assert edges(expected, SHOP, seen, HALF_LIFE_S)["cart", "redis"] == pytest.approx(first / 2)
    assert edges(expected, SHOP, seen, FADED * HALF_LIFE_S) == {}


def test_it_ends_with_the_policy():
    row = policy(of(app="cart"), name="cart", ingress=[{"from": [app("web")]}])
    expected = priors(SHOP, row)
    assert expected.policies(Changes((policy(of(app="cart"), name="cart", ingress=[{"from": [app("other")]}]),)))
    assert edges(expected, SHOP) == {("cart", "other"): WEAK}
    assert expected.policies(Changes(gone=("shop/cart",)))
    assert edges(expected, SHOP) == {}


PODS = (pod("cart"), pod("pay", "bank"), pod("pay", "fake"), pod("web"))
BY_LABEL = {"namespaceSelector": of(team="money"), "podSelector": of(app="pay")}
BY_NAME = {"namespaceSelector": of(**{"kubernetes.io/metadata.name": "bank"}), "podSelector": of(app="pay")}
JOINED = {
    "shop": NamespaceTerms(frozenset({"bank"}), labels={"team": "money"}),
    "bank": NamespaceTerms(frozenset({"*"}), labels={"team": "money"}),
    "fake": NamespaceTerms(frozenset({"shop"}), labels={"team": "money"}),
}
"""shop and bank allow each other; fake is allowed by nobody."""


class TestNamespaces:
    """A rule by namespaces counts where both have let the other's pods be kin."""

    def weights(self, peer: Mapping[str, Any], **settings: NamespaceTerms):
        expected = priors(PODS, policy(of(app="cart"), ingress=[{"from": [peer]}]))
        expected.set_namespaces(Namespaces(settings))
        return edges(expected, PODS)

    @pytest.mark.parametrize("peer", [BY_LABEL, BY_NAME], ids=["by label", "by name"])
    def test_of_joined_namespaces_it_counts(self, peer):
        assert self.weights(peer, **JOINED) == {("bank/pay", "cart"): WEAK}

    @pytest.mark.parametrize("peer", [BY_LABEL, BY_NAME], ids=["by label", "by name"])
    def test_of_others_it_does_not(self, peer):
        assert self.weights(peer) == {}
        assert self.weights(peer, bank=JOINED["bank"]) == {}

    def test_all_joined_ones_and_its_own_are_meant_by_an_empty_selector(self):
        everywhere = {"namespaceSelector": EVERYBODY, "podSelector": where("app", "In", "pay", "web")}
        assert self.weights(everywhere, **JOINED) == {("bank/pay", "cart"): WEAK, ("cart", "web"): WEAK}
        assert self.weights(everywhere) == {("cart", "web"): WEAK}

    def test_what_is_no_more_joined_is_no_more_expected(self):
        expected = priors(PODS, policy(of(app="cart"), ingress=[{"from": [BY_NAME]}]))
        assert expected.set_namespaces(Namespaces(JOINED))
        assert edges(expected, PODS)
        assert expected.set_namespaces(Namespaces())
        assert edges(expected, PODS) == {}


def test_of_all_expected_pairs_those_that_weigh_least_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "EXPECTED_EDGES", 1)
    pods = (pod("web", names="cart:80"), pod("cart"), pod("redis"))
    expected = priors(pods, policy(of(app="redis"), ingress=[{"from": [app("cart")]}]))
    expected.services(Changes((ServiceRow("shop", "cart", {"app": "cart"}),)))
    assert edges(expected, pods) == {("cart", "web"): WEAK / PERMITTED}
    assert expected.left_out() == {"expected_edges": 1}
