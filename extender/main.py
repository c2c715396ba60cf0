"""numakin-extender: the program. Everything is wired here, and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import structlog
from flask import Flask

from extender import log, published
from extender.apiserver import ApiServer, own_namespace
from extender.cluster import graphview
from extender.cluster.pods import NodeChanges, PodChanges
from extender.cluster.readout import Gauge, gauges, members
from extender.cluster.state import Cluster, Settings
from extender.cluster.view import DecisionRow
from extender.config import BadConfig, Config, host_and_port, load
from extender.groups import GroupObjects
from extender.kube.config import connect
from extender.kube.grouprows import GroupChanges
from extender.kube.publish import Desired, Unwanted
from extender.lasting import Lasting
from extender.learning import Learner
from extender.reports.session import Taps
from extender.rollcall import RollCall
from extender.scheduler.metrics import Metrics
from extender.scheduler.routes import create_app
from extender.serving import Application, calm_collector
from placement.traffic import Flow
from proto.certificates import BadCertificate, Files, Renewed

LEARNER_STOP_SECONDS = 2.0

NAMESPACE = "numakin"
"""Where the manifests put everything."""

_log = structlog.get_logger("extender")


class Program(Taps):
    """One extender in one process: the cluster, the two servers, the watch."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.metrics = Metrics()
        self.cluster = Cluster(
            Settings(config.report_timeout, config.hold),
        )
        self.learner = Learner(self.cluster.learned)
        self.lasting = Lasting(self.learner.restored, lambda: self.cluster.known)
        self.groups = GroupObjects()
        self.metrics.gauges(lambda: gauges(self.cluster.picture(), self.cluster.live))
        self.metrics.gauges(lambda: graphview.gauges(self.cluster.known, self.learner.dropped_flows))
        self.http_tls = _renewed("http", Files(config.tls_cert, config.tls_key, config.tls_client_ca))
        self._grpc_tls = _renewed("grpc", Files(config.grpc_tls_cert, config.grpc_tls_key, config.grpc_tls_client_ca))
        self.metrics.gauges(self._expiries)
        self._ending = False
        self._missing = "the gRPC port is not open yet"
        self._api: ApiServer | None = None
        self._topologies = published.Topologies()

    def app(self) -> Flask:
        return create_app(
            self.cluster, self.metrics, lambda: self._missing or self.rollcall.missing(), refuse=self.config.refuse
        )

    def begin(self, http: str) -> None:
        """In the worker: opens the gRPC port, then says where everything is."""
        # Imported here since the import itself starts threads, and the arbiter forks.
        from extender.reports.server import Server  # noqa: PLC0415

        calm_collector()
        config = self.config
        # From now on: a worker that takes the place of another has heard nobody yet.
        self.rollcall = RollCall(config.enforcer_account, self._unseen, self._heard)
        self.learner.start()
        self._api = self._connected()
        if self._api is None:
            # Else the API server tells of each pod before kube-scheduler asks about it.
            self.cluster.asked = self.learner.asked
        identify = None
        if self._api is not None and config.enforcer_account:
            identify = partial(self._api.node_of, account=config.enforcer_account)
        self._server = Server(self.cluster, self, config.grpc_listen, self._grpc_tls, identify)
        self._server.start()
        if self._api is not None:
            self.metrics.gauges(self._api.gauges)
            self._api.start()
        self._missing = ""
        host, _ = host_and_port("grpc_listen", config.grpc_listen)
        addresses = {"http": http, "grpc": f"{host}:{self._server.port}", "pid": os.getpid()}
        _log.info("ready", **addresses, kube=self._api is not None)
        if config.ready_file:
            _written(Path(config.ready_file), msgspec.json.encode(addresses))

    def _connected(self) -> ApiServer | None:
        """None without an API server: then pods are known from their enforcers' reports alone."""
        api = connect(self.config.kubeconfig, os.environ) if self.config.kube else None
        if api is not None:
            namespace = self.config.namespace or own_namespace() or NAMESPACE
            told = self.pods_changed, self.nodes_changed, self.groups_changed
            return ApiServer(api, *told, self.published, namespace=namespace, terms=self.config.terms)
        if self.config.enforcer_account:
            raise BadConfig("--enforcer-account needs an API server to check tokens with")
        return None

    def end(self) -> None:
        """What was learned is complete before it is written for the last time."""
        self._missing = "shutting down"
        self._server.stop()
        self.learner.stop(LEARNER_STOP_SECONDS)
        self._ending = True
        if self._api is not None:
            self._api.stop()

    def pods_changed(self, changes: PodChanges) -> None:
        """What the watch calls, on its own thread."""
        self.learner.pods(changes)
        self.rollcall.pods(changes)
        self._server.promise(self.cluster.apply_pods(changes))

    def nodes_changed(self, changes: NodeChanges) -> None:
        self.rollcall.nodes(changes)
        self.cluster.apply_nodes(changes)

    def groups_changed(self, changes: GroupChanges) -> None:
        """As `pods_changed`, of the groups' objects."""
        self.lasting.changed(changes)
        self.groups.changed(changes)
        waiting = self.cluster.asked_for(self.groups.specs())
        if self._api is not None and self.config.refuse:
            self._api.wake(waiting)

    def _unseen(self) -> list[str]:
        return self._api.unseen() if self._api is not None else []

    def _heard(self, node: str) -> bool:
        return self.cluster.view(node) is not None

    def _expiries(self) -> Iterator[Gauge]:
        ports = {"http": self.http_tls, "grpc": self._grpc_tls}
        found = {port: one.expires for port, one in ports.items() if one is not None}
        name = "numakin_extender_certificate_expiration_timestamp_seconds"
        yield name, "When the certificate in use ends, in seconds since 1970.", "port", found

    def published(self) -> Iterator[Desired | Unwanted]:
        """First the groups, which hold what was learned."""
        picture, rows = self.cluster.picture(), dict(self.groups.rows())
        texts, known = self.lasting.texts(last=self._ending), self.cluster.known
        if self.lasting.current:
            for row in self.groups.forgotten({*members(picture), *known.members, *texts}, known):
                del rows[row.group]
                yield row.unwanted
        yield from published.groups(picture, texts, rows)
        yield from self._topologies.objects(picture, self.cluster.live)

    def decided(self, node: str, row: DecisionRow) -> None:
        self.metrics.predictions.labels(row.outcome).inc()
        if self._api is not None:
            self._api.decided(row)
        _log.info(
            "decided", node=node, pod=f"{row.namespace}/{row.name}", container=row.container, event_kind=row.event,
            numa_nodes=row.numa_nodes, promise=row.outcome,
        )  # fmt: skip

    def traffic(self, node: str, flows: tuple[Flow, ...]) -> None:
        self.learner.traffic(node, flows)

    def changed(self, node: str) -> None:
        if self._api is not None and self.config.refuse:
            self._api.wake(self.cluster.welcome(node))

    def counted(self, result: str) -> None:
        self.metrics.reports.labels(result).inc()


def _renewed(port: str, files: Files) -> Renewed | None:
    """None where the port has no TLS; BadCertificate when it can't have it."""
    if not files.cert:
        return None
    found = Renewed(files, lambda why: _log.error("renewed certificate not taken", port=port, why=why))
    found.current()
    return found


def _written(path: Path, content: bytes) -> None:
    """Whole or not at all: whoever waits for the file may read it the moment it is there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.rename(path)


def main() -> None:
    try:
        config = load(sys.argv[1:], os.environ)
    except BadConfig as bad:
        sys.exit(f"numakin-extender: {bad}")
    log.configure(config.log_level, config.log_format)
    _log.debug("options", **msgspec.to_builtins(config))
    try:
        program = Program(config)
    except BadCertificate as bad:
        sys.exit(f"numakin-extender: {bad}")
    Application(config, program.app, program.begin, program.end, program.http_tls).run()


if __name__ == "__main__":
    main()
