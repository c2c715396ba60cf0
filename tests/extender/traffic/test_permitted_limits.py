"""What is over a bound of what NetworkPolicies permit is left out, and counted."""

from __future__ import annotations

from extender.state.pods import Changes
from extender.traffic.limits import (
    PEERS_OF_POLICY,
    POLICIES_OF_NAMESPACE,
    TERMS_OF_SELECTOR,
    WORKLOADS_SEARCHED,
    WORKLOADS_SELECTED,
)
from numakin.placement.namespaces import Namespaces, NamespaceTerms
from tests.extender.traffic.permitting import EVERYBODY, SHOP, WEAK, app, edges, of, pod, policy, priors, where


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
        joined = Namespaces({name: NamespaceTerms(frozenset({"*"})) for name in ("shop", "bank", "mint")})
        peer = {"namespaceSelector": EVERYBODY, "podSelector": of(tier="db")}
        expected = priors((*SHOP, *pods), policy(of(app="cart"), ingress=[{"from": [peer]}]))
        expected.set_namespaces(joined)
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
