"""Who is expected to talk to whom before any traffic: weak, and fading as traffic comes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from extender.state.group_spec import GroupSpec
from extender.state.pods import Changes, ContainerRow, OwnerRow, PodRow, ServiceRow
from extender.traffic.known import TrafficLearning
from extender.traffic.limits import WORKLOADS_SELECTED
from extender.traffic.priors import FADED, HALF_LIFE_S, SHARE, UNSEEN, Priors
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.mentions import mentions

WEB, CART, REDIS, OTHER = (f"shop/Deployment/{name}" for name in ("web", "cart", "redis", "other"))
WEB_CART, CART_REDIS, CART_OTHER = (CART, WEB), (CART, REDIS), (CART, OTHER)


def pod(workload: str, *values: str, namespace: str = "shop", replica: int = 0, group: str = "auto") -> PodRow:
    """One of a Deployment, whose container's environment has these values."""
    return PodRow(
        uid=f"{namespace}-{workload}-{replica}",
        namespace=namespace,
        name=f"{workload}-{replica}",
        annotations={"group.numakin.io": group} if group else {},
        containers=(ContainerRow("main", {"cpu": "1"}),),
        owner=OwnerRow("Deployment", workload),
        labels={"app": workload},
        mentions=mentions(namespace, values),
    )


def service(name: str, namespace: str = "shop", **selector: str) -> ServiceRow:
    return ServiceRow(namespace, name, selector or {"app": name})


def priors(pods: Iterable[PodRow], *services: ServiceRow) -> Priors:
    expected = Priors()
    expected.pods(Changes(tuple(pods)))
    expected.services(Changes(services))
    return expected


SHOP = (pod("web", "cart:7070", "postgres"), pod("cart", "redis:6379"), pod("redis"), pod("other"))
LIVE = (WEB, CART, REDIS, OTHER)
SERVICES = (service("cart"), service("redis"), service("web"))


def test_the_services_that_a_pod_names_are_expected_to_be_its_kin():
    assert priors(SHOP, *SERVICES).weights({}, LIVE, 0.0) == {WEB_CART: SHARE * UNSEEN, CART_REDIS: SHARE * UNSEEN}


@pytest.mark.parametrize(
    ("pods", "services"),
    [
        (SHOP, [service("cart", namespace="other")]),
        ((pod("web", "cart:7070"), pod("cart", group="")), SERVICES),
        ((pod("web", "cart:7070"), pod("cart", namespace="other")), SERVICES),
        ((pod("cart", "cart:7070"),), SERVICES),
        ((pod("web", "cart:7070"), pod("cart")), [ServiceRow("shop", "cart")]),
    ],
    ids=["a Service of another namespace", "not opted in", "pods of another namespace", "itself", "no selector"],
)
def test_nothing_else_is(pods, services):
    assert priors(pods, *services).weights({}, LIVE, 0.0) == {}


def test_the_order_in_which_they_come_does_not_matter():
    expected = Priors()
    expected.services(Changes(SERVICES[:1]))
    expected.pods(Changes(SHOP[:2]))
    assert set(expected.weights({}, LIVE[:2], 0.0)) == {WEB_CART}
    expected.services(Changes(SERVICES[1:]))
    expected.pods(Changes(SHOP[2:]))
    assert expected.weights({}, LIVE, 0.0) == priors(SHOP, *SERVICES).weights({}, LIVE, 0.0)


def test_a_service_of_several_workloads_is_shared_among_them_and_one_of_too_many_says_nothing():
    behind = [pod("cart"), pod("redis")]
    rows = [PodRow(**{**_fields(row), "labels": {"tier": "back"}}) for row in behind]
    web = pod("web", "back")
    weights = priors([web, *rows], service("back", tier="back")).weights({}, LIVE, 0.0)
    assert weights == {WEB_CART: SHARE * UNSEEN / 2, (REDIS, WEB): SHARE * UNSEEN / 2}
    many = [PodRow(**{**_fields(pod(f"w{at}")), "labels": {"tier": "back"}}) for at in range(WORKLOADS_SELECTED + 1)]
    live = [WEB, *(row.workload for row in many)]
    assert priors([web, *many], service("back", tier="back")).weights({}, live, 0.0) == {}


def _fields(row: PodRow) -> dict:
    return {name: getattr(row, name) for name in PodRow.__dataclass_fields__}


def test_an_operators_edges_count_with_their_weights():
    expected = priors(SHOP, *SERVICES)
    assert expected.set_group_specs(
        {"shop/shop": GroupSpec(edges={(OTHER, CART): 3, (WEB, "shop/Deployment/gone"): 1})}
    )
    assert expected.weights({}, LIVE, 0.0)[CART_OTHER] == 3 * SHARE * UNSEEN
    assert len(expected.weights({}, LIVE, 0.0)) == 3


GONE = "shop/Deployment/gone"


@pytest.mark.parametrize(
    ("edges", "awaited"),
    [
        ({(WEB, CART): 2}, {}),
        ({(WEB, GONE): 2}, {(GONE, WEB): 2.0}),
        ({(GONE, "shop/Deployment/late"): 1}, {(GONE, "shop/Deployment/late"): 1.0}),
        ({(WEB, CART): 2, (CART, GONE): 3}, {(CART, GONE): 3.0}),
    ],
    ids=["both have pods", "one has none", "neither has any", "only the one that is missing"],
)
def test_what_an_operator_wrote_of_workloads_without_pods_is_awaited(edges, awaited):
    """As heavy as it will be expected to be once they have pods."""
    expected = priors(SHOP)
    expected.set_group_specs({"shop/shop": GroupSpec(edges=edges)})
    expected.weights({}, LIVE, 0.0)
    weights = {pair: weight * SHARE * UNSEEN for pair, weight in awaited.items()}
    assert expected.awaited({}) == ({"shop/shop": weights} if weights else {})


def test_who_has_pods_is_no_longer_awaited_and_who_lost_them_is_again():
    expected = priors(SHOP)
    expected.set_group_specs({"shop/shop": GroupSpec(edges={(WEB, CART): 1})})
    for live, awaited in ((LIVE, False), ((WEB,), True)):
        expected.weights({}, live, 0.0)
        assert bool(expected.awaited({})) is awaited


def test_what_is_expected_is_comparable_with_what_is_seen_in_its_namespace():
    seen = {WEB_CART: 100.0, (REDIS, WEB): 300.0, (OTHER, OTHER): 7.0, ("a/Deployment/x", "a/Deployment/y"): 1.0}
    assert priors(SHOP, *SERVICES).weights(seen, LIVE, 0.0)[CART_REDIS] == SHARE * 200.0


def test_it_fades_once_both_ends_are_seen_to_talk():
    expected = priors(SHOP, *SERVICES)
    both = {WEB_CART: 10.0, (OTHER, REDIS): 10.0}
    first = expected.weights(both, LIVE, 100.0)[CART_REDIS]
    assert expected.weights(both, LIVE, 100.0 + HALF_LIFE_S)[CART_REDIS] == pytest.approx(first / 2)
    assert expected.weights(both, LIVE, 100.0 + FADED * HALF_LIFE_S) == {}


def test_without_traffic_it_stays():
    expected = priors(SHOP, *SERVICES)
    one_end = {(CART, OTHER): 10.0}
    first = expected.weights(one_end, LIVE, 0.0)
    assert expected.weights(one_end, LIVE, 1e6) == first


def test_what_has_no_pods_is_expected_of_nobody():
    expected = priors(SHOP, *SERVICES)
    assert set(expected.weights({}, (WEB, CART), 0.0)) == {WEB_CART}
    expected.services(Changes(gone=("shop/cart",)))
    assert expected.weights({}, (WEB, CART), 0.0) == {}


def test_changes_show_whether_anything_expected_may_have_changed():
    expected = priors(SHOP, *SERVICES)
    assert not expected.pods(Changes(SHOP))
    assert not expected.pods(Changes((pod("cart", "redis:6379", replica=1), pod("stranger", "cart", group=""))))
    assert expected.pods(Changes((pod("cart", "redis:6379", "web"),)))
    assert not expected.set_group_specs({"shop/shop": GroupSpec(priorities={CART: 2})})


class TestLearning:
    """Together with traffic."""

    @pytest.fixture
    def learning(self) -> TrafficLearning:
        learning = TrafficLearning()
        learning.apply(Changes(SHOP), 0.0)
        learning.priors.services(Changes(SERVICES))
        return learning

    def test_kin_and_groups_are_known_before_the_first_packet(self, learning):
        known = learning.known(0.0)
        assert known.peers[CART].keys() == {WEB, REDIS}
        assert known.members == {"shop/auto-cart": sorted((CART, REDIS, WEB))}
        assert known.found.members[REDIS].reason == (
            "expected to talk with cart, by what is written down: no traffic was seen yet"
        )
        assert known.graph.edges == {}
        assert known.lasting()["shop/auto-cart"].edges == {}

    def test_traffic_takes_its_place(self, learning):
        flows = [Flow("shop-redis-0", "shop-other-0", "tcp", 10**6, 10**4)]
        flows.append(Flow("shop-web-0", "shop-cart-0", "tcp", 10**6, 10**4))
        learning.receive("n1", flows, 10.0)
        early = learning.known(10.0).peers[REDIS]
        assert early[OTHER] > early[CART] > 0
        learning.receive("n1", flows, 10.0 + 6 * HALF_LIFE_S)
        late = learning.known(10.0 + 6 * HALF_LIFE_S).peers[REDIS]
        assert late[CART] < late[OTHER] / 20
