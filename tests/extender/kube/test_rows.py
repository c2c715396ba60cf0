"""Pods and nodes are reduced to what placement needs."""

import json
from math import inf

import pytest

from extender.kube.stream import nodes, pods, reduce, services
from extender.state.node_domains import ZONE
from extender.state.pod_terms import NO_POD_TERMS, PodSelector, PodTerms, SpreadTerm
from extender.state.pods import ContainerRow, OwnerRow, ServiceRow
from numakin.placement.model.demand import PodBudget
from numakin.placement.model.node_terms import NO_TERMS, Taint
from numakin.placement.traffic.mentions import NO_MENTIONS, mention


def row(pod: dict):
    return pods().row(json.dumps(pod).encode())


POD = {
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "uid": "u1",
        "labels": {"pod-template-hash": "abc"},
        "annotations": {"group.numakin.io": "cart", "kubernetes.io/config.seen": "x", "size.numakin.io/pod": "3"},
        "ownerReferences": [
            {"kind": "Fan", "name": "f", "uid": "o1"},
            {"kind": "ReplicaSet", "name": "web-abc", "uid": "o2", "controller": True},
        ],
    },
    "spec": {
        "nodeName": "n1",
        "hostNetwork": True,
        "initContainers": [
            {"name": "init"},
            {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
        ],
        "containers": [{"name": "main", "resources": {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}}}],
    },
    "status": {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}]},
}


def test_a_pod_has_all_that_placement_asks_for():
    result = row(POD)
    assert (result.uid, result.namespace, result.name, result.node) == ("u1", "shop", "web-1", "n1")
    assert (result.phase, result.host_network) == ("Running", True)
    assert (result.ip, result.other_ips) == ("10.0.0.7", ("fd00::7",))
    assert result.annotations == {"group.numakin.io": "cart", "size.numakin.io/pod": "3"}
    assert (result.owner, result.template) == (OwnerRow("Deployment", "web"), "abc")
    assert result.workload == "shop/Deployment/web"
    assert result.containers == (
        ContainerRow("init", init=True),
        ContainerRow("proxy", {"cpu": "100m"}, init=True, restartable=True),
        ContainerRow("main", {"cpu": "1"}, {"memory": "1Gi"}),
    )


BY_HOST = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}


BY_ZONE = {**BY_HOST, "topologyKey": ZONE}


def affinity(*terms: dict) -> dict:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*terms]}}}


def spread(**more) -> dict:
    return {"topologySpreadConstraints": [{**BY_HOST, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **more}]}


def beside(*terms: dict) -> dict:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*terms]}}}


EXPRESSION = {"key": "app", "operator": "Exists"}
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("spec", "own_terms", "known"),
    [
        ({}, False, False),
        (affinity(BY_HOST), True, True),
        (affinity(BY_HOST, BY_ZONE), True, True),
        (affinity(BY_ZONE), True, True),
        (affinity({**BY_HOST, "namespaces": ["other"]}), True, False),
        (affinity({**BY_HOST, "namespaceSelector": {}}), True, False),
        (affinity({**BY_HOST, "matchLabelKeys": ["pod-template-hash"]}), True, True),
        (affinity({"topologyKey": "kubernetes.io/hostname"}), True, False),
        (affinity({**BY_HOST, "labelSelector": {}}), True, False),
        (affinity({**BY_HOST, "labelSelector": {"matchExpressions": [EXPRESSION]}}), True, True),
        (affinity({**BY_HOST, "labelSelector": {"matchExpressions": [{**EXPRESSION, "operator": "Gt"}]}}), True, False),
        (affinity({**BY_HOST, "labelSelector": ["app"]}), True, False),
        (affinity({**BY_HOST, "topologyKey": 1}), True, False),
        (affinity(7), True, False),
        ({"affinity": ["none"]}, True, False),
        (beside(BY_ZONE), True, True),
        ({**affinity(BY_HOST), "nodeSelector": {"disk": "ssd"}}, True, True),
        ({**affinity(BY_HOST), "nodeSelector": {"disk": 1}}, True, False),
        ({**affinity(BY_HOST), **CLAIM}, True, False),
        (CLAIM, True, False),
        ({"nodeSelector": {"disk": "ssd"}}, False, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, True, False),
        (spread(), True, True),
        (spread(maxSkew=2), True, True),
        (spread(**BY_ZONE), True, True),
        (spread(labelSelector={"matchLabels": {"app": "other"}}), True, False),
        (spread(labelSelector={"matchExpressions": [EXPRESSION]}), True, True),
        (spread(matchLabelKeys=["pod-template-hash"]), True, True),
        (spread(minDomains=3, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor"), True, True),
        *((spread(maxSkew=skew), True, False) for skew in (0, "1", True, 1.5, None)),
        *((spread(**more), True, False) for more in ({"minDomains": -1}, {"nodeTaintsPolicy": "Obey"})),
        ({"topologySpreadConstraints": 7}, True, False),
        (spread(topologyKey=""), True, False),
        ({**spread(), **affinity(BY_HOST)}, True, True),
        (spread(whenUnsatisfiable="ScheduleAnyway"), False, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, False, False),
    ],
)
def test_a_pod_says_itself_where_it_may_go(spec, own_terms, known):
    metadata = {**POD["metadata"], "labels": {"app": "web", "pod-template-hash": "abc"}}
    result = row({**POD, "metadata": metadata, "spec": {**POD["spec"], **spec}})
    assert (result.name, result.own_terms) == ("web-1", own_terms)
    assert (result.said != NO_POD_TERMS) is known


class TestWhatAPodSaysOfOthers:
    def test_is_of_those_whose_labels_it_selects(self):
        metadata = {**POD["metadata"], "labels": {"app": "web", "pod-template-hash": "abc"}}
        rule = spread(**BY_ZONE, matchLabelKeys=["pod-template-hash", "of no label"])
        (term,) = row({**POD, "metadata": metadata, "spec": {**POD["spec"], **rule}}).said.spread
        assert term == SpreadTerm(ZONE, PodSelector(frozenset({("app", "web"), ("pod-template-hash", "abc")})))

    def test_is_one_object_for_all_replicas_and_another_for_other_labels(self):
        read = pods()

        def said(app: str) -> PodTerms:
            pod = {**POD, "metadata": {**POD["metadata"], "labels": {"app": app}}, "spec": spread()}
            return read.row(json.dumps(pod).encode()).said

        assert said("web") is said("web")
        assert (said("web") != NO_POD_TERMS, said("db")) == (True, NO_POD_TERMS)

    def test_is_not_read_of_pods_that_have_not_opted_in(self):
        result = row({"metadata": {"name": "plain", "labels": {"app": "web"}}, "spec": spread()})
        assert (result.own_terms, result.said) == (False, NO_POD_TERMS)


IN_POOL = {
    "nodeSelector": {"pool": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "fast", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
            }
        }
    },
}


class TestWhatAPodSaysOfNodes:
    def test_is_kept_of_a_pod_that_has_opted_in(self):
        terms = row({**POD, "spec": {**POD["spec"], **IN_POOL}}).terms
        taints = (Taint("dedicated", "fast", "NoSchedule"),)
        assert terms.admits("n", {"pool": "fast", "disk": "nvme"}, taints)
        assert not terms.admits("n", {"pool": "fast"}, taints)
        assert not terms.admits("n", {"pool": "slow", "disk": "nvme"}, ())
        assert row({"metadata": {"name": "plain"}, "spec": IN_POOL}).terms is NO_TERMS

    def test_is_one_object_for_all_replicas(self):
        read = pods()
        one, other = (read.row(json.dumps({**POD, "spec": {**POD["spec"], **IN_POOL}}).encode()) for _ in range(2))
        assert one.terms is other.terms

    @pytest.mark.parametrize(
        "spec",
        [
            {"nodeSelector": ["pool"]},
            {"tolerations": "all"},
            {"tolerations": [{"key": "gpu", "operator": "About"}]},
            {"tolerations": [{"key": ["gpu"]}]},
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [1]}}},
        ],
    )
    def test_that_can_t_be_read_leaves_the_pod_as_one_that_says_itself_where_it_may_go(self, spec):
        result = row({**POD, "spec": {**POD["spec"], **spec}})
        assert (result.name, result.own_terms, result.terms) == ("web-1", True, NO_TERMS)


@pytest.mark.parametrize(("own", "kept"), [({"group.numakin.io": "cart"}, True), ({}, False)], ids=["in", "not in"])
def test_what_katalyst_s_annotations_ask_for_is_kept_of_pods_that_opted_in(own, kept):
    theirs = {"katalyst.kubewharf.io/qos_level": "dedicated_cores"}
    result = row({**POD, "metadata": {**POD["metadata"], "annotations": own | theirs}})
    assert result.annotations == (own | theirs if kept else own)


@pytest.mark.parametrize(
    ("said", "taken"),
    [({"cpu": "250m", "memory": "120Mi"}, (250, 120 << 20)), (None, (0, 0)), ({"cpu": "much"}, (0, 0))],
)
def test_what_its_runtime_class_has_a_pod_take_is_counted_beside_its_containers(said, taken):
    seen = row({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}], "overhead": said}})
    assert (seen.overhead.cpu_milli, seen.overhead.memory) == taken
    assert seen.demand.cpu_milli == 0


def test_a_pod_that_is_being_deleted_is_leaving():
    metadata = {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert row({**POD, "metadata": metadata}).leaving
    assert not row(POD).leaving


@pytest.mark.parametrize(
    "pod",
    [
        {"metadata": {"name": "a"}, "spec": {}},
        {"metadata": {"name": "a", "annotations": None}, "spec": {"containers": None, "nodeName": None}, "status": {}},
        {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "x", "resources": {"limits": None}}]}, "new": []},
    ],
    ids=["bare", "nulls", "unknown fields"],
)
def test_whatever_may_be_missing_may_be_missing(pod):
    assert row(pod).name == "a"


def changed(*, metadata=None, spec=None, status=None):
    return row(
        {
            "metadata": {**POD["metadata"], **(metadata or {})},
            "spec": {**POD["spec"], **(spec or {})},
            "status": {**POD["status"], **(status or {})},
        }
    )


RESIZED = [{"name": "main", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3", "memory": "2Gi"}}}]
OWNED = [{"kind": "Node", "name": "n1", "uid": "n", "controller": True}]
HASH = "6d0bcf7fa2b0a8d1c7a6d86c7b5b5f01"


class TestResources:
    """What the node has given counts, not what the spec asks for."""

    def test_of_a_container_that_was_resized(self):
        result = changed(status={"containerStatuses": RESIZED})
        assert result.containers[2] == ContainerRow("main", {"cpu": "2"}, {"memory": "2Gi"})

    def test_a_limit_that_its_spec_does_not_name_is_its_pod_s(self):
        """As a container shows it that was given the limit of its pod's own resources."""
        own = {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}
        shown = {"name": "main", "resources": {"limits": {"cpu": "4", "memory": "1Gi"}}}
        result = changed(spec={"resources": own}, status={"containerStatuses": [shown]})
        assert result.containers[2].limits == {"memory": "1Gi"}
        assert result.budget == PodBudget(4)

    def test_what_was_set_aside_goes_before_what_is_carried_out(self):
        result = changed(status={"containerStatuses": [{**RESIZED[0], "allocatedResources": {"cpu": "4"}}]})
        assert result.containers[2].requests == {"cpu": "4"}

    def test_of_a_sidecar(self):
        given = [{"name": "proxy", "allocatedResources": {"cpu": "200m"}}]
        assert changed(status={"initContainerStatuses": given}).containers[1].requests == {"cpu": "200m"}

    def test_a_status_that_tells_none_changes_nothing(self):
        assert changed(status={"containerStatuses": [{"name": "main"}]}).containers == row(POD).containers

    @pytest.mark.parametrize(
        ("status", "cpu"), [({}, 4000), ({"resources": {"requests": {"cpu": "5"}}}, 5000)], ids=["asked", "given"]
    )
    def test_the_pods_own_go_before_its_containers(self, status, cpu):
        own = {"requests": {"cpu": "4", "memory": "8Gi"}, "limits": {"memory": "8Gi"}}
        demand = changed(spec={"resources": own}, status=status).demand
        assert (demand.cpu_milli, demand.memory, demand.memory_limit) == (cpu, 8 << 30, 8 << 30)


class TestStaticPods:
    """A mirror pod goes by what the node calls its static pod."""

    def mirror(self, value: str, owners: list) -> dict:
        return {"annotations": {"kubernetes.io/config.mirror": value}, "ownerReferences": owners, "labels": {}}

    def test_its_uid_is_the_manifests_hash(self):
        assert changed(metadata=self.mirror(HASH, OWNED)).uid == HASH

    @pytest.mark.parametrize(
        ("value", "owners"),
        [(HASH, []), ("u2", OWNED), ("0c5b1f43-97f3-4b7f-8f39-6f8f5a1d2c10", OWNED), ("", OWNED)],
        ids=["nobody's", "no hash", "a pod's uid", "none"],
    )
    def test_nobody_takes_another_pods_uid_so(self, value, owners):
        assert changed(metadata=self.mirror(value, owners)).uid == "u1"

    def test_it_is_nobodys_replica(self):
        first, other = (changed(metadata={**self.mirror(HASH, OWNED), "name": name}) for name in ("a-n1", "b-n1"))
        assert (first.workload, other.workload) == ("shop/Pod/a-n1", "shop/Pod/b-n1")

    def test_its_end_is_told_by_the_same_name(self):
        body = {"metadata": {**POD["metadata"], **self.mirror(HASH, OWNED)}, "spec": {}}
        line = json.dumps({"type": "DELETED", "object": body}).encode()
        assert reduce(pods(), [line]).changes.gone == (HASH,)


def test_replicas_share_their_containers():
    reader = pods()
    first, other = (reader.row(json.dumps(POD).encode()) for _ in range(2))
    assert first.containers is other.containers


def test_a_node_is_ready_when_its_condition_says_so():
    read = nodes().row
    conditions = [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}]
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n1"}]
    body = {"metadata": {"name": "n1", "uid": "u"}, "status": {"conditions": conditions, "addresses": addresses}}
    ready = read(json.dumps(body).encode())
    assert (ready.name, ready.ready, ready.addresses) == ("n1", True, ("10.0.0.1", "n1"))
    assert not read(b'{"metadata":{"name":"n2"}}').ready


NAMING = {
    "containers": [
        {"name": "main", "env": [{"name": "CART", "value": "cart:7070"}, {"name": "KEY", "valueFrom": {}}]},
        {"name": "proxy", "args": ["--upstream=http://web.shop.svc.cluster.local/"], "command": ["run"]},
    ],
    "initContainers": [{"name": "wait", "command": ["sh", "-c", "until nc -z redis 6379; do sleep 1; done"]}],
}


class TestServiceNames:
    """Of pods that have opted in, and as nothing that could be read back."""

    def test_in_the_environment_and_arguments_of_all_containers(self):
        result = pods(service_names=True).row(json.dumps({**POD, "spec": NAMING}).encode())
        assert {mention(name) for name in ("cart", "web", "redis")} <= result.mentions.names
        assert "cart" not in repr(result.mentions)

    def test_what_one_pod_names_is_no_other_s_whose_texts_or_namespace_differ(self):
        read = pods(service_names=True).row

        def named(namespace: str, host: str) -> frozenset[int]:
            spec = {"containers": [{"name": "main", "env": [{"name": "AT", "value": host}]}]}
            metadata = {**POD["metadata"], "namespace": namespace}
            return read(json.dumps({"metadata": metadata, "spec": spec}).encode()).mentions.names

        cart, web = frozenset({mention("cart")}), frozenset({mention("web")})
        for _ in range(2):
            assert (named("shop", "cart.shop.svc"), named("shop", "web.shop.svc")) == (cart, web)
            assert named("bank", "cart.shop.svc") == frozenset()

    @pytest.mark.parametrize(
        ("service_names", "annotations"), [(False, POD["metadata"]["annotations"]), (True, {})], ids=["off", "not ours"]
    )
    def test_nothing_is_looked_for_without_being_asked(self, service_names, annotations):
        body = {**POD, "metadata": {**POD["metadata"], "annotations": annotations}, "spec": NAMING}
        assert pods(service_names=service_names).row(json.dumps(body).encode()).mentions == NO_MENTIONS


@pytest.mark.parametrize(
    ("spec", "selector"),
    [
        ({"selector": {"app": "cart"}}, {"app": "cart"}),
        ({}, {}),
        ({"type": "ExternalName", "selector": {"app": "cart"}}, {}),
    ],
    ids=["of pods", "without pods", "elsewhere"],
)
def test_a_service_shows_which_pods_are_behind_it(spec, selector):
    body = {"metadata": {"name": "cart", "namespace": "shop"}, "spec": spec}
    assert services().row(json.dumps(body).encode()) == ServiceRow("shop", "cart", selector)


@pytest.mark.parametrize(
    ("said", "row"),
    [
        ({"cpu": "15890m", "memory": "65Gi", "pods": "110"}, (15_890, 65 << 30, 110)),
        ({"cpu": "16", "memory": "32900948Ki"}, (16_000, 32_900_948 << 10, inf)),
        ({"cpu": "16"}, (16_000, inf, inf)),
        ({"cpu": "many", "memory": "1Gi", "pods": "1k"}, (inf, 1 << 30, 1000)),
        (None, (inf, inf, inf)),
    ],
)
def test_a_nodes_row_says_what_kube_scheduler_has_to_give_there(said, row):
    body = {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "16"}, "allocatable": said}}
    assert nodes().row(json.dumps(body).encode()).allocatable == row
