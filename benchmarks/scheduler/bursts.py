"""Bursts of pods on a real kube-scheduler."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.cluster.nodes.fleet import Fleet
from benchmarks.cluster.nodes.fleet import Terms as FleetTerms
from benchmarks.cluster.nodes.population import NodeSpec, population
from benchmarks.cluster.nodes.remote import Remote
from lab.cluster.binaries import binaries
from lab.cluster.cluster import Cluster, Terms
from lab.standins.all_or_nothing import AllOrNothing
from numakin.process.forked import cpu_s

NAMESPACE = "burst"
MEMBERS = 10
"""Of each group."""

DEPLOYMENTS = 2
"""Of each group, with as many replicas each."""

PATIENCE_S = 120.0
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Way:
    """extender: none, noop or numakin. percentage: percentageOfNodesToScore, 0 for kube-scheduler's default. profile:
    100 for a profile of its own, by which the opted-in pods are scheduled.
    """

    extender: str
    opted_in: bool = False
    percentage: int = 0
    profile: bool = False

    @property
    def floor(self) -> Way:
        """An extender that does nothing, where the pods that make the burst are sampled alike."""
        return Way("noop", percentage=100 if self.profile and self.opted_in else self.percentage)

    def __str__(self) -> str:
        pods = "opted-in" if self.opted_in else "un-opted"
        sampling = f"{self.percentage} %" if self.percentage else "default sampling"
        return f"{self.extender}, {pods} pods, {'100 % for a profile' if self.profile else sampling}"


WAYS = (
    Way("none"),
    Way("noop"),
    Way("numakin"),
    Way("numakin", opted_in=True),
    Way("numakin", profile=True),
    Way("numakin", opted_in=True, profile=True),
    Way("noop", percentage=100),
    Way("numakin", percentage=100),
    Way("numakin", opted_in=True, percentage=100),
)


@dataclass(frozen=True, slots=True)
class Burst:
    """pods_per_s: from the first to the last binding. cpu_ms: of numakin-extender for each pod, its creation included.
    whole: groups on one node; groups: all.
    """

    pods_per_s: float
    cpu_ms: float
    whole: int
    groups: int


class Bench(AllOrNothing):
    """A context manager: a control plane, an extender and so many simulated nodes."""

    def __init__(self, nodes: int) -> None:
        self._specs = population(nodes, Random(1))
        self._count = 0

    def _start(self) -> None:
        self._cluster = cluster = self._stack.enter_context(Cluster(binaries(), Terms({})))
        self._api, (self._extender,) = cluster.plane.api, cluster.extenders
        for spec in self._specs:
            self._register(spec)
        cluster.until(self._no_taints, "the nodes' taints to go", PATIENCE_S)
        fleet = Remote(Fleet, self._specs, FleetTerms(self._extender.grpc))
        self._stack.callback(fleet.close)
        fleet.call("dial")
        cluster.until(lambda: self._extender.live() == len(self._specs), "every enforcer's report", PATIENCE_S)
        noop = subprocess.Popen([sys.executable, "-m", "benchmarks.scheduler.noop"], stdout=subprocess.PIPE, text=True)
        self._stack.callback(noop.kill)
        assert noop.stdout is not None
        self._noop = noop.stdout.readline().strip()
        cluster.make_namespace(NAMESPACE)

    def burst(self, way: Way, pods: int) -> Burst:
        """Deployments make them, all before the scheduler sees the first, so that their creation is not measured; a
        small burst goes before, so that connections and caches are there. pods: a multiple of MEMBERS.
        """
        plane = self._cluster.plane
        plane.scheduler.kill()
        address = {"none": "", "noop": self._noop, "numakin": self._extender.http}[way.extender]
        plane.start_scheduler(address, "profile" if way.profile else "", percentage=way.percentage)
        self._scheduled(way, 2 * MEMBERS)
        return self._scheduled(way, pods)

    @property
    def ways(self) -> list[Way]:
        """Those that this release of Kubernetes has."""
        return [way for way in WAYS if not way.profile or self._cluster.plane.release.profiles_have_percentages]

    def metric(self, name: str) -> float:
        return self._extender.metric(name)

    def _scheduled(self, way: Way, pods: int) -> Burst:
        self._count += 1
        deployments = [self._deployment(number, way) for number in range(pods * DEPLOYMENTS // MEMBERS)]
        cpu_before = cpu_s(self._extender.process.pid)
        os.kill(self._cluster.plane.scheduler.pid, signal.SIGSTOP)
        for body in deployments:
            self._api.request("POST", self._deployments, None, body)
        self._cluster.until(lambda: len(self._listed({})) == pods, "the Deployments' pods", PATIENCE_S)
        os.kill(self._cluster.plane.scheduler.pid, signal.SIGCONT)
        begin = time.perf_counter()
        while self._listed({"fieldSelector": "spec.nodeName=", "limit": "1"}):
            if time.perf_counter() - begin > PATIENCE_S:
                raise TimeoutError(f"{way}: pods are unbound after {PATIENCE_S:g} s")
            time.sleep(0.02)
        seconds, extender_s = time.perf_counter() - begin, cpu_s(self._extender.process.pid) - cpu_before
        nodes: dict[str, set[str]] = defaultdict(set)
        for pod in self._listed({}):
            nodes[pod["metadata"]["labels"]["group"]].add(pod["spec"]["nodeName"])
        self._api.request("DELETE", self._deployments, {"propagationPolicy": "Background"})
        self._cluster.until(lambda: not self._api.get(self._replica_sets).json()["items"], "their end", PATIENCE_S)
        self._cluster.until(self._none_left, "the pods to be gone", PATIENCE_S)
        whole = sum(len(each) == 1 for each in nodes.values())
        return Burst(pods / seconds, 1000 * extender_s / pods, whole, len(nodes))

    def _none_left(self) -> bool:
        """Ends those that are there, as no kubelet does; whether there were none."""
        self._api.request("DELETE", self._path, {"gracePeriodSeconds": "0"})
        return not self._listed({"limit": "1"})

    @property
    def _deployments(self) -> str:
        return f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"

    @property
    def _replica_sets(self) -> str:
        return f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{NAMESPACE}/pods"

    def _listed(self, query: dict[str, str]) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self._api.get(self._path, query).json()["items"]
        return listed

    def _deployment(self, number: int, way: Way) -> dict[str, Any]:
        group = f"g{self._count}-{number // DEPLOYMENTS}"
        labels = {"group": group, "app": f"{group}-{number % DEPLOYMENTS}"}
        resources = {"requests": {"cpu": "250m", "memory": "64Mi"}}
        spec = {
            "schedulerName": "numakin" if way.profile and way.opted_in else "default-scheduler",
            "containers": [{"name": "main", "image": "none", "resources": resources}],
        }
        annotations = {"group.numakin.io": group} if way.opted_in else {}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": labels["app"]},
            "spec": {
                "replicas": MEMBERS // DEPLOYMENTS,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec},
            },
        }

    def _register(self, spec: NodeSpec) -> None:
        node = {"metadata": {"name": spec.name, "labels": {"kubernetes.io/hostname": spec.name}}}
        self._api.request("POST", "/api/v1/nodes", None, {"apiVersion": "v1", "kind": "Node", **node})
        room = {"cpu": f"{spec.allocatable_milli}m", "memory": str(spec.memory), "pods": "250"}
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        status = {"status": {"capacity": room, "allocatable": room, "conditions": ready}}
        self._api.request("PATCH", f"/api/v1/nodes/{spec.name}/status", None, status, MERGE_PATCH)

    def _no_taints(self) -> bool:
        return not any(node["spec"].get("taints") for node in self._api.get("/api/v1/nodes").json()["items"])
