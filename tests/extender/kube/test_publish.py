"""Objects are kept as they should be: applied when they differ, never by force, and nothing is repeated."""

import json
import math
from dataclasses import replace

import pytest

from extender.kube import publish
from extender.kube.api import MERGE_PATCH, Api, Unreachable
from extender.kube.objects.affinitygroup import EdgeStatus, GroupStatus, MemberStatus, affinity_group
from extender.kube.publish import Desired, Publisher, Unwanted
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import THROTTLED, Answer, Cut
from lab.standins.patience import until
from numakin.process.threads import Failure, Threads
from tests.manifests.rendered import files, one
from tests.manifests.structural import of_object, violations
from tests.supervised import threads

GROUPS = "numakin.io/v1alpha1"
DEFINITION = one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io")
SCHEMA = of_object(DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"])

LOOKS = 5
"""Of a round that waits for pods to have been scheduled, before they have been."""


@pytest.fixture
def server(server: ApiServer) -> ApiServer:
    server.define(DEFINITION)
    return server


class Wanted:
    """What should be, and a publisher of it that is stepped by hand."""

    def __init__(self, api: Api) -> None:
        self.objects: list[Desired] = []
        self.leading, self.since = True, 0.0
        self.publisher = Publisher(
            api, lambda: self.objects, lambda: self.since if self.leading else math.inf, threads=threads()
        )

    def round(self, *groups: GroupStatus) -> int:
        """How many were published."""
        self.objects = [affinity_group(group) for group in groups]
        for each in self.objects:
            assert violations(SCHEMA, {**each.body, "status": {**(each.status or {}), **(each.learned or {})}}) == []
        before = self.publisher.published
        self.publisher.round()
        return self.publisher.published - before


@pytest.fixture
def wanted(api: Api) -> Wanted:
    return Wanted(api)


def status(server: ApiServer, name: str = "cart") -> dict:
    return server.get(GROUPS, "affinitygroups", name, "default")["status"]


CART = GroupStatus("default", "cart", (MemberStatus("cart-1", "node-1", "0"),), 0.925)


def test_an_object_is_made_with_its_status(server, wanted):
    assert wanted.round(CART) == 1
    assert status(server) == {
        "memberCount": 1,
        "members": [{"pod": "cart-1", "node": "node-1", "numaNodes": "0"}],
        "homes": "node-1/0",
        "locality": "92 %",
    }


def test_what_has_not_changed_is_not_written(server, wanted):
    wanted.round(CART)
    before = len(server.asked)
    assert wanted.round(CART) == 0
    assert len(server.asked) == before


def test_a_new_object_is_not_written_again_once_the_watch_shows_it(server, wanted):
    wanted.round(CART)
    uid = server.get(GROUPS, "affinitygroups", "cart", "default")["metadata"]["uid"]
    assert wanted.round(replace(CART, uid=uid)) == 0
    assert wanted.round(CART) == 1, "somebody deleted it"


def test_what_has_changed_is(server, wanted):
    wanted.round(CART)
    assert wanted.round(GroupStatus("default", "cart")) == 1
    assert status(server)["memberCount"] == 0
    assert status(server)["members"] == []


def test_what_was_learned_outlives_a_status_that_does_not_know_it(server, api, wanted):
    """As after a restart, before the graph is there again."""
    edge = EdgeStatus("shop/Deployment/cart", "shop/StatefulSet/db", 1000, 20)
    wanted.round(GroupStatus("default", "cart", edges=(edge,), learned="text"))
    Wanted(api).round(CART)
    assert status(server)["memberCount"] == 1
    assert status(server)["edges"][0]["source"] == "shop/Deployment/cart"
    assert status(server)["learned"] == "text"
    wanted.round(GroupStatus("default", "cart", edges=(), learned=""))
    assert (status(server)["edgeCount"], status(server)["edges"]) == (0, [])


def test_a_users_spec_is_left_alone(server, wanted):
    spec = {"policy": "restricted", "priorities": [{"workload": "Deployment/db", "priority": 5}]}
    body = {"metadata": {"name": "cart"}, "spec": spec}
    server.create(GROUPS, "affinitygroups", body, "default")
    wanted.round(CART)
    result = server.get(GROUPS, "affinitygroups", "cart", "default")
    assert result["spec"] == spec
    assert result["status"]["memberCount"] == 1


def unwanted(server: ApiServer) -> Unwanted:
    made = server.get(GROUPS, "affinitygroups", "cart", "default")["metadata"]
    return Unwanted(affinity_group(CART).path, made["uid"], made["resourceVersion"])


def gone(server: ApiServer) -> bool:
    return server.store.get(server.answers.kind(GROUPS, "affinitygroups"), ("default", "cart")) is None


def test_what_should_be_no_more_is_deleted_and_made_anew_when_it_should(server, wanted):
    wanted.round(CART)
    wanted.objects = [unwanted(server)]
    wanted.publisher.round()
    assert gone(server)
    assert wanted.round(CART) == 1
    assert status(server)["memberCount"] == 1


def test_what_somebody_changed_meanwhile_is_not_deleted(server, api, wanted):
    wanted.round(CART)
    wanted.objects = [unwanted(server)]
    path, spec = affinity_group(CART).path, {"spec": {"size": 8}}
    api.request("PATCH", path, body=spec, content_type=MERGE_PATCH)
    wanted.publisher.round()
    assert not gone(server)
    asked = server.count("delete", "affinitygroups")
    wanted.publisher.round()
    assert server.count("delete", "affinitygroups") == asked


def test_an_object_that_somebody_deleted_is_made_anew(server, wanted):
    wanted.round(replace(CART, uid="the first"))
    server.delete(GROUPS, "affinitygroups", "cart", namespace="default")
    assert wanted.round(replace(CART, uid="")) == 1
    assert not gone(server)


def test_one_that_somebody_deleted_before_it_was_seen_is_made_anew(server, wanted, monkeypatch):
    monkeypatch.setattr(publish, "UNSEEN_S", 0.0)
    wanted.round(CART)
    server.delete(GROUPS, "affinitygroups", "cart", namespace="default")
    assert wanted.round(CART) == 1
    assert not gone(server)


GONE = Answer(
    404, b'{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"\\"cart\\" not found"}'
)


def test_one_that_is_made_and_deleted_at_once_is_made_anew_before_long(server, wanted, monkeypatch):
    monkeypatch.setattr(publish, "AGAIN_S", 0.0)
    server.order(GONE, "patch", "affinitygroups")
    assert [wanted.round(CART), wanted.round(CART)] == [0, 1]
    assert not gone(server)


def test_a_new_publisher_finds_all_right_and_changes_nothing(server, api, wanted):
    wanted.round(CART)
    revision = server.store.revision
    assert Wanted(api).round(CART) == 1
    assert server.store.revision == revision


def test_another_owners_fields_are_never_forced(server, api, wanted):
    api.apply(
        "/apis/numa.example/v1/namespaces/default/affinitygroups/cart".replace("numa.example/v1", GROUPS),
        {
            "apiVersion": GROUPS,
            "kind": "AffinityGroup",
            "metadata": {"name": "cart", "annotations": {"numakin.io/group": "x"}},
        },
        manager="someone",
    )
    assert wanted.round(CART) == 0
    assert wanted.publisher.left_to_others == 1
    asked = len(server.asked)
    assert wanted.round(CART) == 0
    assert len(server.asked) == asked


def test_a_kind_that_the_cluster_does_not_have_is_asked_for_once(server, api, wanted):
    thing = {"apiVersion": "no.example/v1", "kind": "Thing", "metadata": {"name": "a"}}
    wanted.objects = [Desired(f"/apis/no.example/v1/things/{name}", thing) for name in "abc"]
    before = len(server.asked)
    wanted.publisher.round()
    wanted.publisher.round()
    assert wanted.publisher.published == 0
    assert len(server.asked) == before  # not even a known resource: counted nowhere


def test_one_objects_refusal_does_not_hold_up_the_others(server, wanted):
    server.order(Answer(422, b'{"kind":"Status","reason":"Invalid","code":422}'), "patch", "affinitygroups")
    assert wanted.round(CART, GroupStatus("default", "shop")) == 1
    assert status(server, "shop")["memberCount"] == 0


def test_an_api_server_that_has_too_much_to_do_is_asked_once_in_a_round(server, wanted):
    server.order(THROTTLED, "patch", "affinitygroups", times=2)
    groups = [GroupStatus("default", name) for name in ("a", "b", "c", "d")]
    before = len(server.asked)
    assert (wanted.round(*groups), wanted.round(*groups)) == (0, 0)
    assert len(server.asked) == before + 2
    assert wanted.round(*groups) == 2  # those that were refused are left alone for a while


def test_a_failing_api_server_ends_the_round(server, wanted):
    server.order(Cut(), "patch", "affinitygroups")
    with pytest.raises(Unreachable):
        wanted.round(CART, GroupStatus("default", "shop"))
    assert wanted.round(CART, GroupStatus("default", "shop")) == 2


def test_a_replica_that_does_not_lead_writes_nothing_and_then_everything_once(server, wanted):
    wanted.leading = False
    assert wanted.round(CART) == 0
    wanted.leading = True
    assert wanted.round(CART) == 1


def test_a_replica_that_led_no_more_between_two_rounds_writes_everything_once(server, wanted):
    """Another may have written what it thought right meanwhile."""
    wanted.round(CART)
    assert wanted.round(CART) == 0
    wanted.since = 30.0
    assert wanted.round(CART) == 1
    assert wanted.round(CART) == 0


def test_a_replica_that_loses_its_lead_in_a_round_writes_nothing_more(server, api):
    """The one that leads has written what is newer, and would not write it again."""
    leads = iter((0.0, 0.0))
    objects = [affinity_group(GroupStatus("default", name)) for name in ("a", "b", "c")]
    publisher = Publisher(api, lambda: objects, lambda: next(leads, math.inf), threads=threads())
    publisher.round()
    assert publisher.published == 1


def test_a_round_is_bounded(server, wanted, monkeypatch):
    monkeypatch.setattr(publish, "PER_ROUND", 3)
    groups = [GroupStatus("default", f"g{number}") for number in range(5)]
    assert wanted.round(*groups) == 3
    assert wanted.round(*groups) == 2
    assert wanted.round(*groups) == 0


def test_it_runs_by_itself_until_it_is_stopped(server, api):
    publisher = Publisher(api, lambda: [affinity_group(CART)], every_s=0.01, threads=threads())
    publisher.start()
    server.wait_for("done", 2, verb="patch", resource="affinitygroups")
    publisher.stop()
    assert status(server)["memberCount"] == 1


@pytest.mark.parametrize(
    ("longest_s", "busy_looks", "deferred"), [(600.0, LOOKS, LOOKS), (0.2, math.inf, 1)], ids=["until then", "too long"]
)
def test_it_waits_while_pods_are_scheduled_but_not_for_long(api, monkeypatch, longest_s, busy_looks, deferred):
    monkeypatch.setattr(publish, "LONGEST_DEFERRED_S", longest_s)
    asked, looks = [], []

    def objects() -> list[Desired]:
        asked.append(1)
        return [affinity_group(CART)] if len(asked) > 1 else []

    def scheduling() -> bool:
        looks.append(len(asked))
        return len(looks) <= busy_looks

    publisher = Publisher(api, objects, busy=scheduling, every_s=0.01, threads=threads())
    publisher.start()
    until(lambda: publisher.published == 1, "it is published")
    publisher.stop()
    assert looks[:deferred] == [1] * deferred, "the source was asked again after that alone"


def test_a_round_ends_when_pods_begin_to_be_scheduled_and_the_rest_comes_later(api, monkeypatch):
    monkeypatch.setattr(publish, "LONGEST_DEFERRED_S", 600.0)
    groups = [affinity_group(replace(CART, name=name)) for name in ("a", "b", "c")]
    asked, looks = [], []

    def objects() -> list[Desired]:
        asked.append(1)
        return groups if len(asked) > 1 else []

    def scheduling() -> bool:
        """From the first object on, for so many looks."""
        if publisher.published == 0:
            return False
        looks.append(publisher.published)
        return len(looks) <= LOOKS

    publisher = Publisher(api, objects, busy=scheduling, every_s=0.01, threads=threads())
    publisher.start()
    until(lambda: publisher.published == len(groups), "all are published")
    publisher.stop()
    assert looks[:LOOKS] == [1] * LOOKS


def test_a_source_that_fails_does_not_end_it(server, api):
    answers = iter([RuntimeError("a bug"), [affinity_group(CART)]])

    def source():
        result = next(answers, [])
        if isinstance(result, Exception):
            raise result
        return result

    failures: list[Failure] = []
    publisher = Publisher(api, source, every_s=0.01, threads=Threads(failures.append))
    publisher.start()
    server.wait_for("done", 2, verb="patch", resource="affinitygroups")
    publisher.stop()
    assert [str(failure.error) for failure in failures] == ["a bug"]


def test_the_fullest_status_fits_into_etcd(server, wanted):
    members = tuple(
        MemberStatus("p" * 250 + f"{n:03}", "n" * 253, "0-1", "Deployment/" + "w" * 253) for n in range(600)
    )
    edges = tuple(EdgeStatus("a" * 320, "b" * 320 + str(n), n, n) for n in range(600))
    assert wanted.round(GroupStatus("default", "cart", members, 1.0, edges, "x" * 65_536)) == 1
    result = status(server)
    assert (result["memberCount"], len(result["members"])) == (600, 500)
    assert (result["edgeCount"], len(result["edges"])) == (600, 100)
    assert result["edges"][0]["bytesPerSecond"] == 599
    assert len(json.dumps(result)) < 1_000_000
