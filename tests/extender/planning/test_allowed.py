"""What pods say of each other is held to as kube-scheduler does."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.kube.stream import nodes as node_rows
from extender.kube.stream import pods as pod_rows
from extender.planning.allowed import AllowedNodes
from extender.state.label_domains import LabelDomains, node_facts
from extender.state.node_domains import ZONE
from extender.state.pod_terms import HOST, PodKind
from tests.extender import pod_rules
from tests.extender.pod_rules import Object

RACK = "example.com/rack"
KEYS = st.sampled_from([HOST, ZONE, ZONE, RACK])

SELECTORS = st.one_of(
    st.builds(lambda app: {"matchLabels": {"app": app}}, st.sampled_from(["web", "db"])),
    st.builds(
        lambda operator, apps: {"matchExpressions": [{"key": "app", "operator": operator, "values": apps}]},
        st.sampled_from(["In", "NotIn"]),
        st.sampled_from([["web"], ["db"], ["web", "db"]]),
    ),
    st.just({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
    st.just({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
)
TERMS = st.lists(
    st.builds(lambda key, select: {"topologyKey": key, "labelSelector": select}, KEYS, SELECTORS), max_size=2
)


def required(terms: list[Object]) -> Object:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


@st.composite
def spreading(draw: st.DrawFn) -> Object:
    more: Object = {"topologyKey": draw(KEYS), "labelSelector": draw(SELECTORS), "maxSkew": draw(st.integers(1, 3))}
    more["whenUnsatisfiable"] = draw(st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]))
    for name, values in (
        ("minDomains", [1, 3]), ("nodeAffinityPolicy", ["Honor", "Ignore"]), ("nodeTaintsPolicy", ["Honor", "Ignore"]),
    ):  # fmt: skip
        if draw(st.booleans()):
            more[name] = draw(st.sampled_from(values))
    return more


@st.composite
def pods(draw: st.DrawFn) -> Object:
    """One whose spread constraints select itself."""
    labels = {"app": draw(st.sampled_from(["web", "db"]))}
    if draw(st.booleans()):
        labels["tier"] = "front"
    pod: Object = {"metadata": {"name": "p", "labels": labels, "annotations": {"group.numakin.io": "shop"}}, "spec": {}}
    spec = pod["spec"]
    spec["affinity"] = {"podAntiAffinity": required(draw(TERMS)), "podAffinity": required(draw(TERMS))}
    if draw(st.booleans()):
        spec["affinity"].pop(draw(st.sampled_from(["podAntiAffinity", "podAffinity"])))
    every = draw(st.lists(spreading(), max_size=2))
    spec["topologySpreadConstraints"] = [each for each in every if pod_rules.selects(each["labelSelector"], pod)]
    if draw(st.integers(0, 3)) == 0:
        spec["nodeSelector"] = {"pool": "fast"}
    if draw(st.integers(0, 4)) == 0:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


@st.composite
def clusters(draw: st.DrawFn) -> list[Object]:
    found = []
    for at in range(draw(st.integers(1, 5))):
        labels = {HOST: f"n{at}"}
        for key, values in ((ZONE, "xyz"), (RACK, "12")):
            if draw(st.integers(0, 5)):
                labels[key] = draw(st.sampled_from(values))
        if draw(st.booleans()):
            labels["pool"] = "fast"
        taints = [{"key": "t", "effect": "NoSchedule"}] if draw(st.integers(0, 4)) == 0 else []
        found.append({"metadata": {"name": f"n{at}", "labels": labels}, "spec": {"taints": taints}})
    return found


def kind(pod: Object) -> PodKind:
    return pod_rows().row(json.dumps(pod).encode()).kind


def domains(nodes: list[Object]) -> LabelDomains:
    read = node_rows()
    return LabelDomains(node_facts([read.row(json.dumps(node).encode()) for node in nodes]))


@settings(max_examples=200, deadline=None)
@given(
    nodes=clusters(),
    pod=pods(),
    there=st.lists(st.tuples(pods(), st.integers(0, 4), st.booleans()), max_size=6),
)
def test_a_pod_may_go_where_kube_scheduler_lets_it_go(nodes: list[Object], pod: Object, there: Any):
    """Of the nodes that its node selector and their taints leave it. What was asked before changes nothing."""
    names = [node["metadata"]["name"] for node in nodes]
    bound = [(each, names[at % len(names)]) for each, at, _ in there]
    allowed, own = AllowedNodes(domains(nodes), {}), kind(pod)
    for (each, name), (*_, asked) in zip(bound, there, strict=True):
        if asked:
            allowed.admits(own, name)
        allowed.add(kind(each), name)
    open_to = [name for name, node in zip(names, nodes, strict=True) if pod_rules.admits(pod, node)]
    assert {name: allowed.admits(own, name) for name in open_to} == {
        name: pod_rules.lets(pod, name, nodes, bound) for name in open_to
    }
