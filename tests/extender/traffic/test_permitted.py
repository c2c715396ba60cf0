"""Workloads that NetworkPolicies let talk to each other are expected to, before any traffic; the policies are JSON as the
API server sends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from benchmarks.graphs.online_boutique import NAMED
from extender.kube.policy_rows import policies
from extender.state.pods import Changes, OwnerRow, PodRow, ServiceRow
from extender.traffic import priors as module
from extender.traffic.limits import (
    PEERS_OF_POLICY,
    POLICIES_OF_NAMESPACE,
    TERMS_OF_SELECTOR,
    WORKLOADS_SEARCHED,
    WORKLOADS_SELECTED,
)
from extender.traffic.permitted import PERMITTED
from extender.traffic.policies import PolicyRow
from extender.traffic.priors import FADED, HALF_LIFE_S, SHARE, UNSEEN, Priors
from placement.namespaces import Namespaces, Settings
from placement.traffic.mentions import mentions

WEAK = SHARE * PERMITTED * UNSEEN
EVERYBODY: dict[str, Any] = {}


def pod(name: str, namespace: str = "shop", names: str = "", **labels: str) -> PodRow:
    """Of a Deployment, with the label `app` and these."""
    return PodRow(
        uid=f"{namespace}-{name}",
        namespace=namespace,
        name=f"{name}-0",
        annotations={"group.numakin.io": "auto"},
        owner=OwnerRow("Deployment", name),
        labels={"app": name, **labels},
        mentions=mentions(namespace, [names]),
    )


def of(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


def where(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}]}


def app(name: str) -> dict[str, Any]:
    return {"podSelector": of(app=name)}


def policy(selector: Mapping[str, Any], namespace: str = "shop", name: str = "", **spec: Any) -> PolicyRow:
    """As it is read of a list's item."""
    metadata = {"name": name or json.dumps([selector, spec]), "namespace": namespace}
    body = {"metadata": metadata, "spec": {"podSelector": selector, **spec}}
    (row,) = policies().page(json.dumps({"metadata": {}, "items": [body]}).encode()).rows
    return row


def priors(pods: Iterable[PodRow], *rows: PolicyRow) -> Priors:
    made = Priors()
    made.pods(Changes(tuple(pods)))
    made.policies(Changes(rows, whole=True))
    return made


def edges(expected: Priors, pods: Iterable[PodRow], seen: Mapping[tuple[str, str], float] = {}, now: float = 0.0):
    """Weights by pair of names, each `app` or, outside of the shop, `NAMESPACE/app`."""
    weights = expected.weights(seen, [row.workload for row in pods], now)
    return {
        tuple(end.replace("/Deployment/", "/").removeprefix("shop/") for end in pair): w for pair, w in weights.items()
    }


SHOP = tuple(pod(name) for name in ("web", "cart", "redis", "other"))


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
    "shop": Settings(frozenset({"bank"}), labels={"team": "money"}),
    "bank": Settings(frozenset({"*"}), labels={"team": "money"}),
    "fake": Settings(frozenset({"shop"}), labels={"team": "money"}),
}
"""shop and bank allow each other; fake is allowed by nobody."""


class TestNamespaces:
    """A rule by namespaces counts where both have let the other's pods be kin."""

    def weights(self, peer: Mapping[str, Any], **settings: Settings):
        expected = priors(PODS, policy(of(app="cart"), ingress=[{"from": [peer]}]))
        expected.governed_by(Namespaces(settings))
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
        assert expected.governed_by(Namespaces(JOINED))
        assert edges(expected, PODS)
        assert expected.governed_by(Namespaces())
        assert edges(expected, PODS) == {}


def test_of_all_expected_pairs_those_that_weigh_least_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "EXPECTED_EDGES", 1)
    pods = (pod("web", names="cart:80"), pod("cart"), pod("redis"))
    expected = priors(pods, policy(of(app="redis"), ingress=[{"from": [app("cart")]}]))
    expected.services(Changes((ServiceRow("shop", "cart", {"app": "cart"}),)))
    assert edges(expected, pods) == {("cart", "web"): WEAK / PERMITTED}
    assert expected.left_out() == {"expected_edges": 1}


class TestLimits:
    """What is over one says nothing, and is counted by its name."""

    def test_of_workloads_that_a_selector_means(self):
        many = tuple(pod(f"db{number}", tier="db") for number in range(WORKLOADS_SELECTED + 1))
        expected = priors((*SHOP, *many), policy(of(tier="db"), ingress=[{"from": [app("web")]}]))
        assert edges(expected, (*SHOP, *many)) == {}
        assert expected.left_out() == {"workloads_selected": 1}
        both = policy(of(tier="db"), ingress=[{"from": [app("web"), {"podSelector": where("tier", "In", "db")}]}])
        other = policy(of(app="web"), ingress=[{"from": [{"podSelector": where("tier", "Exists")}]}])
        two = priors((*SHOP, *many), both, other)
        assert edges(two, (*SHOP, *many)) == {}
        assert two.left_out() == {"workloads_selected": 2}
        assert len(edges(expected, (*SHOP, *many[1:]))) == WORKLOADS_SELECTED
        assert expected.left_out() == {}

    def test_of_workloads_that_have_a_label_of_a_selector(self):
        """Though it selects one of them."""
        rare = pod("db0", tier="db", kind="first")
        many = tuple(pod(f"db{number}", tier="db") for number in range(1, WORKLOADS_SEARCHED + 1))
        one_of_them = where("tier", "In", "db", "cache") | of(app="db0")
        only_tier = {"matchExpressions": [*where("tier", "Exists")["matchExpressions"], {
            "key": "kind", "operator": "DoesNotExist"}]}  # fmt: skip
        clients = [{"from": [app("web")]}]
        pods = (*SHOP, rare, *many)
        expected = priors(pods, policy(one_of_them, ingress=clients))
        assert edges(expected, pods) == {("db0", "web"): WEAK}
        expected = priors(pods, policy(only_tier, ingress=clients))
        assert edges(expected, pods) == {}
        assert expected.left_out() == {"workloads_selected": 1}

    def test_of_workloads_that_it_means_in_several_namespaces(self):
        pods = tuple(pod(f"p{number}", space, tier="db") for space in ("bank", "mint") for number in range(5))
        joined = Namespaces({name: Settings(frozenset({"*"})) for name in ("shop", "bank", "mint")})
        peer = {"namespaceSelector": EVERYBODY, "podSelector": of(tier="db")}
        expected = priors((*SHOP, *pods), policy(of(app="cart"), ingress=[{"from": [peer]}]))
        expected.governed_by(joined)
        assert edges(expected, (*SHOP, *pods)) == {}
        assert expected.left_out() == {"workloads_selected": 1}

    def test_of_peers_in_one_policy(self):
        peers = [app(f"c{number}") for number in range(PEERS_OF_POLICY)]
        row = policy(of(app="cart"), ingress=[{"from": peers}], egress=[{"to": [app("redis")]}])
        assert len(row.clients) == PEERS_OF_POLICY
        expected = priors(SHOP, row)
        assert edges(expected, SHOP) == {}
        assert expected.left_out() == {"peers_of_policy": 1}

    def test_of_terms_in_one_selector(self):
        names = [f"n{number}" for number in range(TERMS_OF_SELECTOR - 2)]
        within, beyond = where("app", "In", "cart", *names), where("app", "In", "cart", "redis", *names)
        clients = [{"from": [app("web")]}]
        assert edges(priors(SHOP, policy(within, ingress=clients)), SHOP) == {("cart", "web"): WEAK}
        expected = priors(SHOP, policy(beyond, ingress=clients))
        assert edges(expected, SHOP) == {}
        assert expected.left_out() == {"terms_of_selector": 1}

    def test_of_policies_in_one_namespace(self):
        rows = [policy(of(app="none"), name=f"p{number:03}") for number in range(POLICIES_OF_NAMESPACE)]
        last = policy(of(app="cart"), name="z", ingress=[{"from": [app("web")]}])
        expected = priors(SHOP, *rows, last)
        assert edges(expected, SHOP) == {}
        assert expected.left_out() == {"policies_of_namespace": 1}
        expected.policies(Changes(gone=("shop/p000",)))
        assert edges(expected, SHOP) == {("cart", "web"): WEAK}
        assert expected.left_out() == {}

    def test_of_what_containers_name(self):
        pods = (pod("web", names=" ".join(f"n{number}" for number in range(300))),)
        expected = priors(pods)
        assert edges(expected, pods) == {}
        assert expected.left_out() == {"most_mentions": 1}
