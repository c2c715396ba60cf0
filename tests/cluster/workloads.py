"""Deployments of members, and what became of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError

from extender.kube.api import MERGE_PATCH, ApiError, Unreachable
from lab.cluster.cluster import Cluster
from lab.standins.patience import until

Deployment = dict[str, Any]

RUNNING = "Running"

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def deployment(
    name: str, replicas: int, *, cpu: str = "100m", annotations: Mapping[str, str] | None = None, **spec: Any
) -> Deployment:
    """One that starts at once: no image is ever pulled here. spec: more of the pods' spec."""
    labels = {"app": name}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": dict(annotations or {})},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
            },
        },
    }


def member(name: str, replicas: int, **more: Any) -> Deployment:
    """A group of its own."""
    return deployment(name, replicas, annotations={"group.numakin.io": name}, **more)


def replicas(groups: Iterable[Deployment]) -> int:
    return sum(group["spec"]["replicas"] for group in groups)


class Namespace:
    """Pods of one test, all gone at its end."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name

    def make(self) -> None:
        self.cluster.make_namespace(self.name)

    def deploy(self, *deployments: Deployment) -> None:
        for each in deployments:
            self.cluster.plane.api.request("POST", f"/apis/apps/v1/namespaces/{self.name}/deployments", None, each)

    def update(self, groups: Sequence[Deployment], number: int) -> None:
        """A rolling update of all Deployments at once, until only new pods are there."""
        change = {"spec": {"template": {"metadata": {"labels": {"update": str(number)}}}}}
        for group in groups:
            path = f"/apis/apps/v1/namespaces/{self.name}/deployments/{group['metadata']['name']}"
            self.cluster.plane.api.request("PATCH", path, None, change, MERGE_PATCH)

        def done() -> bool:
            if len(self.cluster.phases(self.name)) != replicas(groups):
                return False
            pods = self.pods()
            new = [pod for pod in pods if pod["metadata"]["labels"].get("update") == str(number)]
            return len(pods) == len(new) == replicas(groups) == _running(pods)

        self.cluster.until(done, f"update {number}")

    def permit(self, client: str, server: str) -> None:
        """A NetworkPolicy by which the pods of one Deployment, and no others, may talk to those of the other."""
        peer = {"podSelector": {"matchLabels": {"app": client}}}
        spec = {"podSelector": {"matchLabels": {"app": server}}, "ingress": [{"from": [peer]}]}
        path = f"/apis/networking.k8s.io/v1/namespaces/{self.name}/networkpolicies"
        self.cluster.plane.api.request("POST", path, None, {"metadata": {"name": server}, "spec": spec})

    def serve(self, *names: str) -> None:
        """A Service for each of these Deployments."""
        for name in names:
            body = {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 7070}]}}
            self.cluster.plane.api.request("POST", f"/api/v1/namespaces/{self.name}/services", None, body)

    def pods(self) -> list[dict[str, Any]]:
        return self.cluster.pods(self.name)

    def bound(self) -> list[dict[str, Any]]:
        return [pod for pod in self.pods() if pod["spec"].get("nodeName")]

    def running(self) -> int:
        """How many pods run."""
        return _running(self.pods())

    def until_running(self, count: int) -> None:
        """Lists of hundreds of pods, asked for all the time, would take more of the CPUs than the pods' starts."""

        def done() -> bool:
            return self.cluster.phases(self.name).count(RUNNING) == count == self.running()

        self.cluster.until(done, f"{count} pods running in {self.name}")

    def reported_cpus(self, pod: str) -> list[str]:
        """Of each container of a pod, as its node told the extender, once it has."""
        path = f"/api/v1/explain?namespace={self.name}&pod={pod}"

        def reported() -> list[str]:
            try:
                happened = self.cluster.extenders[0].get(path)["happened"]
            except HTTPError as error:
                error.close()
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
                return []
            return [row["cpus"] for row in happened if row["container"]]

        return until(reported, f"the extender to be told of {pod}")

    def delete(self) -> None:
        """And waits until the last pod is gone. The namespace's controller rests for five seconds before it ends them."""
        path = f"/api/v1/namespaces/{self.name}"
        for what in (path, f"{path}/pods"):
            self.cluster.until(lambda what=what: self._ended(what), f"{what} to be deleted")
        self.cluster.until(
            lambda: not self.cluster.phases(self.name) and not self.pods(), f"the pods of {self.name} to be gone"
        )

    def _ended(self, what: str) -> bool:
        """Whether it was answered: many pods take the server longer than an answer is waited for, and fewer each time."""
        try:
            self.cluster.plane.api.request("DELETE", what)
        except Unreachable:
            return False
        except ApiError as refused:
            if refused.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise
        return True


@contextmanager
def only(namespace: Namespace, node: str) -> Iterator[None]:
    """Meanwhile no other node takes pods; afterwards all do."""
    others = {name for name in namespace.cluster.nodes if name != node}
    namespace.cluster.kubectl("cordon", *others)
    try:
        until(lambda: others <= _tainted(namespace.cluster), "the others to be tainted")
        yield
    finally:
        namespace.cluster.kubectl("uncordon", *others)
        until(lambda: others.isdisjoint(_tainted(namespace.cluster)), "the others' taints to be gone")


def _tainted(cluster: Cluster) -> set[str]:
    """Nodes with the taint that a controller puts on cordoned ones, and takes from others, when it comes to it."""
    nodes = cluster.plane.api.get("/api/v1/nodes").json()["items"]
    taints = {node["metadata"]["name"]: node["spec"].get("taints", ()) for node in nodes}
    return {name for name, row in taints.items() if any(each["key"] == UNSCHEDULABLE for each in row)}


def published(namespace: Namespace) -> set[str]:
    """The namespace's groups that have an object."""
    path = f"/apis/numakin.io/v1alpha1/namespaces/{namespace.name}/affinitygroups"
    return {each["metadata"]["name"] for each in namespace.cluster.plane.api.get(path).json()["items"]}


def _running(pods: Iterable[dict[str, Any]]) -> int:
    return sum(pod["status"]["phase"] == RUNNING for pod in pods)


def nodes_by_group(pods: Iterable[dict[str, Any]]) -> dict[str, set[str]]:
    nodes: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        group = pod["metadata"].get("annotations", {}).get("group.numakin.io")
        if group and pod["spec"].get("nodeName"):
            nodes[group].add(pod["spec"]["nodeName"])
    return dict(nodes)


def homes(namespace: Namespace, group: str) -> dict[tuple[str, str], list[str]]:
    """Where a group's bound pods are: on each node's NUMA nodes, by the runtime's records, of which Deployments."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for pod in namespace.bound():
        if pod["metadata"].get("annotations", {}).get("group.numakin.io") == group:
            node = pod["spec"]["nodeName"]
            where = str(namespace.cluster.nodes[node].where(pod["metadata"]["uid"]))
            found[node, where].append(pod["metadata"]["labels"]["app"])
    return found


def split(pods: Iterable[dict[str, Any]]) -> dict[str, set[str]]:
    """The groups that ended on more than one node, with those nodes."""
    return {group: nodes for group, nodes in nodes_by_group(pods).items() if len(nodes) > 1}
