"""The whole: control plane, manifests, extender, nodes with their enforcers, in this order."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from extender.kube.api import MERGE_PATCH, ApiError
from lab.cluster import credentials
from lab.cluster.binaries import REPOSITORY, Binaries
from lab.cluster.control_plane import ControlPlane, SchedulerConfig
from lab.cluster.extender import Extender
from lab.cluster.kubelets import Kubelets
from lab.cluster.node import Node
from lab.cluster.service import Service
from lab.standins.all_or_nothing import AllOrNothing
from lab.standins.extender import Begin
from lab.standins.machines import MACHINES, write_sysfs
from lab.standins.patience import PATIENCE_S, until

DEFINITIONS = Path(__file__).parent / "definitions.yaml"

NAMESPACE = "numakin"
ACCOUNT = "numakin-extender"
TOKEN_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Terms:
    """What cluster to make. machines: by node, a name of lab.standins.machines. real: nodes on which the caller will
    start a kubelet. scheduler: its configuration. percentage: percentageOfNodesToScore. http_timeout: how long
    kube-scheduler waits for the extender, empty for what the configuration says. other_extenders: their entries in it.
    labels: more of them, by node.
    scheduling_groups: as ControlPlane's. begin_extender, begin_enforcer: how they are started, where not executed.
    """

    machines: Mapping[str, str]
    real: tuple[str, ...] = ()
    extenders: int = 1
    extender_options: Sequence[str] = ()
    scheduler: SchedulerConfig = ""
    percentage: int | None = None
    http_timeout: str = ""
    other_extenders: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    scheduling_groups: bool = False
    begin_extender: Begin | None = None
    begin_enforcer: Begin | None = None


@dataclass(slots=True)
class Cluster(AllOrNothing):
    """Use as a context manager, on the main thread. Its folder is deleted at the end, unless something failed, or
    `keep` says that something did.
    """

    binaries: Binaries
    terms: Terms
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="numakin-cluster-")))
    nodes: dict[str, Node] = field(default_factory=dict)
    extenders: list[Extender] = field(default_factory=list)
    keep: bool = False
    _plane: ControlPlane | None = None
    _kubelets: Kubelets = field(init=False, repr=False)
    _service: Service = field(init=False, repr=False)
    _credentials: credentials.Credentials | None = None

    @property
    def errors(self) -> list[str]:
        """What the kubelets and the Service could not do; empty in a cluster where all went well."""
        return [*self._kubelets.errors, *self._service.errors]

    @property
    def plane(self) -> ControlPlane:
        assert self._plane is not None
        return self._plane

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """What it prints. CalledProcessError, with its output."""
        command = [self.binaries.kubectl, f"--kubeconfig={self.plane.kubeconfig}", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    def apply(self, objects: Iterable[dict[str, Any]]) -> str:
        """`kubectl apply` of objects of the manifests; what has no namespace comes into NAMESPACE."""
        release = self.plane.release
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [release.known(each) for each in objects]})
        return self.kubectl("apply", *release.apply_options, f"--namespace={NAMESPACE}", "-f", "-", text=text)

    def pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        query = {"labelSelector": selector} if selector else None
        listed: list[dict[str, Any]] = self.plane.api.get(f"/api/v1/namespaces/{namespace}/pods", query).json()["items"]
        return listed

    def phases(self, namespace: str) -> list[str]:
        """Of its pods, as Kubelets.phases: for who waits, and asks for the pods themselves at the end."""
        return self._kubelets.phases(namespace)

    def until(self, done: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """TimeoutError naming `what`."""
        until(done, f"{what}; logs are in {self.folder}", patience_s, pause_s=0.1)

    def make_namespace(self, name: str) -> None:
        """With all that pods need there. The default account, and before Kubernetes 1.24 its token, come a moment
        later; until then every pod is refused.
        """
        self.plane.api.request("POST", "/api/v1/namespaces", None, {"metadata": {"name": name}})
        self.until(lambda: self._takes_pods(name), f"the API server to take pods in the namespace {name}")

    def all_report(self) -> bool:
        """Whether every enforcer reports to every extender."""
        return all(extender.live() == len(self.nodes) for extender in self.extenders)

    def _takes_pods(self, namespace: str) -> bool:
        pod = {"metadata": {"name": "any"}, "spec": {"containers": [{"name": "any", "image": "none"}]}}
        try:
            self.plane.api.request("POST", f"/api/v1/namespaces/{namespace}/pods", {"dryRun": "All"}, pod)
        except ApiError as refused:
            if refused.code not in (HTTPStatus.FORBIDDEN, HTTPStatus.INTERNAL_SERVER_ERROR):
                raise
            return False
        return True

    def _start(self) -> None:
        self._stack.push(self._delete_folder)
        given = credentials.made(self.folder / "credentials", self.terms.real)
        self._credentials = given
        groups = self.terms.scheduling_groups
        self._plane = plane = ControlPlane(self.folder, self.binaries, given, scheduling_groups=groups)
        self._stack.callback(plane.kill)
        plane.start()
        self._make_nodes()
        self.apply(_installed(strict=self.terms.scheduler == "strict"))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")
        self._start_extenders(given)
        self._service = service = Service([extender.http for extender in self.extenders])
        self._stack.callback(service.stop)
        service.start()
        plane.start_scheduler(
            service.address if self.extenders else "",
            self.terms.scheduler,
            percentage=self.terms.percentage,
            http_timeout=self.terms.http_timeout,
            others=self.terms.other_extenders,
        )
        self._start_enforcers()

    def _delete_folder(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is None and not self.keep:
            shutil.rmtree(self.folder)

    def _make_nodes(self) -> None:
        for machine in {*self.terms.machines.values()}:
            write_sysfs(MACHINES[machine], self.folder / "sysfs" / machine)
        for name, machine in self.terms.machines.items():
            sysfs = self.folder / "sysfs" / machine
            node = self.nodes[name] = Node(name, sysfs, self.folder / name, self.terms.begin_enforcer)
            self._stack.callback(node.stop)
            self.register(node)
        self._kubelets = kubelets = Kubelets(self.plane.api, self.nodes)
        self._stack.callback(kubelets.stop)
        kubelets.start()

    def kubelet_credentials(self, node: str, path: Path, host: str = "127.0.0.1") -> Path:
        """Writes the kubeconfig of the kubelet of a real node. host: this machine, as that node reaches it."""
        assert self._credentials is not None
        server = self.plane.server.replace("127.0.0.1", host)
        return self._credentials.kubeconfig(server, path, f"system:node:{node}")

    def register(self, node: Node, name: str = "") -> None:
        """What the node's kubelet does at its first start. name: of another one like it."""
        name = name or node.name
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **self.terms.labels.get(name, {})}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        self.plane.api.request("POST", "/api/v1/nodes", None, body)
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        status = {"capacity": node.capacity, "allocatable": node.allocatable, "conditions": ready}
        self.plane.api.request("PATCH", f"/api/v1/nodes/{name}/status", None, {"status": status}, MERGE_PATCH)

    def _start_extenders(self, given: credentials.Credentials) -> None:
        kubeconfig = self.folder / "extender.kubeconfig"
        given.kubeconfig_with(self.plane.server, kubeconfig, self.token(NAMESPACE, ACCOUNT))
        for number in range(self.terms.extenders):
            options, begin = self.terms.extender_options, self.terms.begin_extender
            extender = Extender(f"extender-{number}", self.folder, kubeconfig, options, begin)
            self._stack.callback(extender.process.kill)
            extender.start()
            self.extenders.append(extender)

    def token(self, namespace: str, account: str) -> str:
        """A ServiceAccount's token, from the API server."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_S},
        }
        token: str = self.plane.api.request("POST", path, None, request).json()["status"]["token"]
        return token

    def _start_enforcers(self) -> None:
        addresses = [extender.grpc for extender in self.extenders]
        for node in self.nodes.values():
            node.start(addresses)
        for node in self.nodes.values():
            node.wait()
        self.until(self.all_report, "every enforcer reports to every extender")


def _installed(*, strict: bool) -> Iterator[dict[str, Any]]:
    """The objects of manifests/base, read without kustomize, which a machine may not have; and a definition of others'
    that numakin publishes objects of.
    """
    base = REPOSITORY / "manifests" / "base"
    names = [base / name for name in yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]]
    names.append(DEFINITIONS)
    if strict:
        names.append(REPOSITORY / "manifests" / "components" / "refuse" / "waking.yaml")
    for name in names:
        yield from yaml.safe_load_all(name.read_text())
