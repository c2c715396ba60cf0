"""A tenant asks by annotation for more than its namespace may have: its containers start, without it, and that is said."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.patience import until
from tests.attack.operated import Site
from tests.metrics import value

GREEDY = {"group.numakin.io": "shop", "cpus.numakin.io": "exclusive"}


def made(*options: str) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        site = Site(Path(folder), *options)
        yield site
        site.close()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    yield from made()


@pytest.fixture(scope="module")
def limited_node() -> Iterator[Site]:
    yield from made("--policy-options", "max-exclusive-cpus-per-namespace=4")


def test_a_tenant_gets_no_more_exclusive_cpus_than_its_namespace_may_have(site):
    tenant, other = site.namespace("greedy"), site.namespace("bystander")
    site.limit(tenant, max_exclusive_cpus="4")
    first, second = (site.run(name, tenant, GREEDY, 3) for name in ("a", "b"))
    assert len(first) == 3
    assert len(second) > 3
    assert first.isdisjoint(second)
    (why,) = site.reasons("greedy/b")
    assert why.startswith("quota 4 exclusive CPUs: for namespace greedy on a node; it has 3 and asked for 3 more")
    assert len(site.run("c", other, GREEDY, 6)) == 6


def test_what_was_not_granted_is_counted_and_told_by_an_event_on_the_pod(site):
    tenant = site.namespace("counted")
    site.limit(tenant, max_exclusive_cpus="0")
    before = counted(site)
    site.run("a", tenant, GREEDY, 2)
    until(lambda: counted(site) > before, "it is counted")
    until(lambda: [text for text in site.messages(tenant) if "quota 0 exclusive CPUs" in text], "it is an Event")


def counted(site: Site) -> float:
    page = until(lambda: site.enforcer.get("/metrics")[1], "the metrics are served")
    return value(page, "numakin_enforcer_over_quota_total")


def test_the_scheduler_s_side_predicts_it_and_says_so(site):
    tenant = site.namespace("predicted")
    site.limit(tenant, max_exclusive_cpus="1")
    requests = {"requests": {"cpu": "2"}}
    pod = site.server.create_pod(
        "a", tenant, annotations=GREEDY, containers=[{"name": "main", "image": "x", "resources": requests}]
    )
    site.extender.scores(json.dumps({"Pod": pod, "NodeNames": ["n1"]}).encode())
    (row,) = site.extender.get(f"/api/v1/explain?namespace={tenant}&pod=a")["scored"]["nodes"]
    assert any("quota 1 exclusive CPUs" in reason for reason in row["reasons"])


def test_an_operator_s_change_counts_for_what_starts_next_and_takes_nothing_back(site):
    tenant = site.namespace("changed")
    site.limit(tenant, max_exclusive_cpus="4")
    first = site.run("a", tenant, GREEDY, 4)
    site.limit(tenant, max_exclusive_cpus="0")
    assert len(site.run("b", tenant, GREEDY, 2)) > 2
    site.limit(tenant, max_exclusive_cpus=None)
    assert len(site.run("c", tenant, GREEDY, 2)) == 2
    assert len(first) == 4


def test_a_limit_that_can_t_be_read_counts_as_none_at_all_and_is_told(site):
    tenant = site.namespace("misspelt")
    site.limit(tenant, max_exclusive_cpus="four")
    assert len(site.run("a", tenant, GREEDY, 2)) > 2
    received = "annotation numakin.io/max-exclusive-cpus: 'four' is not allowed"
    until(lambda: [text for text in site.messages(tenant) if text.startswith(received)], "it is an Event")


def test_keys_are_limited_too(site):
    tenant = site.namespace("keys")
    site.limit(tenant, allowed_keys="policy", max_group_size="5")
    asked = {**GREEDY, "size.numakin.io": "9", "policy.numakin.io": "restricted"}
    assert len(site.run("a", tenant, asked, 2)) > 2
    assert site.reasons("keys/a") == [
        "quota: cpus.numakin.io is not among the keys that its namespace may use",
        "quota: size.numakin.io is not among the keys that its namespace may use",
    ]


def test_limits_hold_again_after_the_hook_was_killed(site):
    tenant = site.namespace("again")
    site.limit(tenant, max_exclusive_cpus="0")
    site.enforcer.kill_hook()
    until(lambda: site.enforcer.joined() and tenant in site.quotas(), "the limits are known again")
    site.run("a", tenant, GREEDY, 2)
    (why,) = until(lambda: site.reasons("again/a"), "it is placed")
    assert why.startswith("quota 0 exclusive CPUs")


def test_a_namespace_s_limit_takes_the_place_of_the_node_s(limited_node):
    tenant = limited_node.namespace("raised")
    limited_node.limit(tenant, max_exclusive_cpus="8")
    assert len(limited_node.run("a", tenant, GREEDY, 8)) == 8


def test_a_pod_can_t_lift_the_limit_by_the_same_annotation(limited_node):
    lifted = {**GREEDY, "numakin.io/max-exclusive-cpus": "1000"}
    assert len(limited_node.run("a", limited_node.namespace("lifted"), lifted, 6)) > 6


def test_a_node_s_own_limit_holds_without_an_extender(limited_node):
    tenant, other = limited_node.namespace("alone"), limited_node.namespace("beside")
    limited_node.extender.stop()
    assert len(limited_node.run("a", tenant, GREEDY, 4)) == 4
    assert len(limited_node.run("b", tenant, GREEDY, 1)) > 1
    assert len(limited_node.run("c", other, GREEDY, 4)) == 4
