"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml

from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.config import connect
from lab.cluster.binaries import REPOSITORY, Binaries
from lab.cluster.credentials import ADMIN, CONTROLLER_MANAGER, SCHEDULER, Credentials
from lab.cluster.processes import Process, executed, listening
from lab.cluster.release import SCHEDULING_GROUPS, SCHEDULING_GROUPS_GATES, Release
from numakin.process.ports import free_port

SCHEDULER_CONFIGS = REPOSITORY / "scheduler-config"

SchedulerConfig = Literal["", "strict", "profile"]
"""Which of SCHEDULER_CONFIGS: `kube-scheduler-config.yaml`, or the one with this suffix."""

AUDITED = "system:serviceaccounts:numakin"
"""The group whose requests are written to the audit log."""

SERVER_NAME = "serverName"
"""The one entry of a tlsConfig that is no file."""

WRITES_PER_S = 500
"""Requests per second that the controller-manager and the scheduler may send; their defaults (20 and 50) would be
what a burst of pods waits for.
"""


class ControlPlane:
    """start() brings up all but the scheduler, whose configuration names an extender: start_scheduler().

    Every component keeps its port over restarts. folder: for logs and data. scheduling_groups: with PodGroups, which a
    release that `has_scheduling_groups` has behind gates.
    """

    def __init__(
        self, folder: Path, binaries: Binaries, credentials: Credentials, *, scheduling_groups: bool = False
    ) -> None:
        self.folder = folder
        self._gates = SCHEDULING_GROUPS_GATES if scheduling_groups else ()
        self.release = Release(binaries.minor)
        self.audit_log = folder / "audit.log"
        self._binaries, self._credentials = binaries, credentials
        self._etcd_port, self._api_port, self._scheduler_port = free_port(), free_port(), free_port()
        self.server = f"https://127.0.0.1:{self._api_port}"
        self.kubeconfig = credentials.kubeconfig(self.server, folder / "admin.kubeconfig", ADMIN)
        self.etcd = self._process("etcd", *self._etcd_options())
        self.api_server = self._process("kube-apiserver", *self._api_server_options())
        self.controller_manager = self._process("kube-controller-manager", *self._controller_manager_options())
        self.scheduler = self._process("kube-scheduler", *self._scheduler_options())
        api = connect(str(self.kubeconfig), {})
        assert api is not None
        self.api: Api = api

    def start(self) -> None:
        """NotUp when one of them does not come up."""
        self.etcd.start()
        self.etcd.until(lambda: listening(self._etcd_port))
        self.start_api_server()
        self.controller_manager.start()
        self.controller_manager.until(self._default_account_made)

    def start_api_server(self) -> None:
        self.api_server.start()
        self.api_server.until(self._api_server_ready)

    def start_scheduler(
        self,
        extender: str,
        kind: SchedulerConfig = "",
        *,
        percentage: int | None = None,
        http_timeout: str = "",
        certificates: Path | None = None,
        others: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """extender: HOST:PORT, empty for none. percentage, http_timeout: percentageOfNodesToScore and the extender's
        httpTimeout in the place of the configuration's own; percentage 0 is kube-scheduler's default. certificates: the
        folder with what the configuration's tlsConfig names; None: plain HTTP, as with manifests/overlays/plaintext.
        others: further extenders' entries.
        """
        name = f"kube-scheduler-config-{kind}.yaml" if kind else "kube-scheduler-config.yaml"
        config: dict[str, Any] = yaml.safe_load((SCHEDULER_CONFIGS / name).read_text())
        user = self._credentials.kubeconfig(self.server, self.folder / "scheduler.kubeconfig", SCHEDULER)
        config["clientConnection"] = {"kubeconfig": str(user), "qps": WRITES_PER_S, "burst": 2 * WRITES_PER_S}
        config["leaderElection"] = {"leaderElect": False}
        for each in config["extenders"]:
            tls = each.pop("tlsConfig")
            if certificates is None:
                each |= {"urlPrefix": f"http://{extender}", "enableHTTPS": False}
            else:
                files = {name: str(certificates / Path(path).name) for name, path in tls.items() if name != SERVER_NAME}
                each |= {"urlPrefix": f"https://{extender}", "tlsConfig": tls | files}
            each["httpTimeout"] = http_timeout or each["httpTimeout"]
        config["extenders"] = [*(config["extenders"] if extender else ()), *map(dict, others)]
        if percentage is not None:
            config["percentageOfNodesToScore"] = percentage
        self._scheduler_config.write_text(yaml.safe_dump(self.release.scheduler_config(config)))
        self.scheduler.start()
        self.scheduler.until(lambda: listening(self._scheduler_port))

    def kill(self) -> None:
        """What it stored is of no more use."""
        for process in (self.scheduler, self.controller_manager, self.api_server, self.etcd):
            process.kill()

    @property
    def _scheduler_config(self) -> Path:
        return self.folder / "scheduler-config.yaml"

    def _process(self, program: str, *options: str) -> Process:
        return Process(program, executed(self._binaries[program]), options, self.folder)

    def _etcd_options(self) -> tuple[str, ...]:
        clients, peers = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{free_port()}"
        return (
            "--name=default", f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}", f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}", "--logger=zap",
        )  # fmt: skip

    def _api_server_options(self) -> tuple[str, ...]:
        given, policy = self._credentials, self.folder / "audit-policy.yaml"
        rules = [{"level": "Metadata", "userGroups": [AUDITED]}, {"level": "None"}]
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
        return (
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}", "--bind-address=127.0.0.1",
            f"--secure-port={self._api_port}", f"--tls-cert-file={given.cert}", f"--tls-private-key-file={given.key}",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            f"--token-auth-file={given.token_file}", "--authorization-mode=Node,RBAC", "--anonymous-auth=false",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={given.account_key}",
            f"--service-account-key-file={given.account_key}", "--service-cluster-ip-range=10.96.0.0/16",
            # Of whom nobody is to be kept waiting; its figures would be a sixth of what the server computes.
            "--enable-priority-and-fairness=false",
            "--allow-privileged=true", f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}",
            *self.release.api_server_options, *self._gates,
            *((f"--runtime-config={SCHEDULING_GROUPS}=true",) if self._gates else ()),
        )  # fmt: skip

    def _controller_manager_options(self) -> tuple[str, ...]:
        given = self._credentials
        user = given.kubeconfig(self.server, self.folder / "controller-manager.kubeconfig", CONTROLLER_MANAGER)
        return (
            f"--kubeconfig={user}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}", "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={given.account_key}", f"--root-ca-file={given.ca}",
            f"--kube-api-qps={WRITES_PER_S}", f"--kube-api-burst={2 * WRITES_PER_S}",
            # Kubelets that are played say once that they are ready, and no more.
            "--node-monitor-grace-period=24h", *self.release.insecure_port_off, *self._gates,
        )  # fmt: skip

    def _scheduler_options(self) -> tuple[str, ...]:
        return (
            f"--config={self._scheduler_config}", "--bind-address=127.0.0.1",
            f"--secure-port={self._scheduler_port}", *self.release.insecure_port_off, *self._gates,
        )  # fmt: skip

    def _api_server_ready(self) -> bool:
        try:
            return self.api.get("/readyz").code == 200
        except (ApiError, Unreachable):
            return False

    def _default_account_made(self) -> bool:
        try:
            return bool(self.api.get("/api/v1/namespaces/default/serviceaccounts/default").json().get("secrets", True))
        except (ApiError, Unreachable):
            return False
