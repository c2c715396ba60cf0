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
from extender.cluster.pods import PodChanges
from extender.cluster.readout import gauges, members
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
from extender.scheduler.metrics import Metrics
from extender.scheduler.routes import create_app
from extender.serving import Application, calm_collector
from placement.traffic import Flow

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
        self.cluster.asked = self.learner.asked
        self.lasting = Lasting(self.learner.restored, lambda: self.cluster.known)
        self.groups = GroupObjects()
        self.metrics.gauges(lambda: gauges(self.cluster.picture(), self.cluster.live))
        self.metrics.gauges(lambda: graphview.gauges(self.cluster.known, self.learner.dropped_flows))
        self._missing = "the gRPC port is not open yet"
        self._api: ApiServer | None = None

    def app(self) -> Flask:
        return create_app(self.cluster, self.metrics, lambda: self._missing, refuse=self.config.refuse)

    def begin(self, http: str) -> None:
        """In the worker: opens the gRPC port, then says where everything is."""
        # Imported here since the import itself starts threads, and the arbiter forks.
        from extender.reports.server import Server, Tls  # noqa: PLC0415

        calm_collector()
        config = self.config
        tls = (
            Tls(config.grpc_tls_cert, config.grpc_tls_key, config.grpc_tls_client_ca) if config.grpc_tls_cert else None
        )
        self.learner.start()
        self._api = self._connected()
        identify = None
        if self._api is not None and config.enforcer_account:
            identify = partial(self._api.node_of, account=config.enforcer_account)
        self._server = Server(self.cluster, self, config.grpc_listen, tls, identify)
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
            told = self.pods_changed, self.cluster.apply_nodes, self.groups_changed
            return ApiServer(api, *told, self.published, namespace=namespace)
        if self.config.enforcer_account:
            raise BadConfig("--enforcer-account needs an API server to check tokens with")
        return None

    def end(self) -> None:
        self._missing = "shutting down"
        if self._api is not None:
            self._api.stop()
        self._server.stop()
        self.learner.stop(LEARNER_STOP_SECONDS)

    def pods_changed(self, changes: PodChanges) -> None:
        """What the watch calls, on its own thread."""
        self.learner.pods(changes)
        self._server.promise(self.cluster.apply_pods(changes))

    def groups_changed(self, changes: GroupChanges) -> None:
        """As `pods_changed`, of the groups' objects."""
        self.lasting.changed(changes)
        self.groups.changed(changes)
        waiting = self.cluster.asked_for(self.groups.specs())
        if self._api is not None and self.config.refuse:
            self._api.wake(waiting)

    def published(self) -> Iterator[Desired | Unwanted]:
        picture, texts, rows = self.cluster.picture(), self.lasting.texts(), dict(self.groups.rows())
        known = self.cluster.known
        yield from published.nodes(picture, self.cluster.live)
        if self.lasting.current:
            for row in self.groups.forgotten({*members(picture), *known.members, *texts}, known):
                del rows[row.group]
                yield row.unwanted
        yield from published.groups(picture, texts, rows)

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
    program = Program(config)
    Application(config, program.app, program.begin, program.end).run()


if __name__ == "__main__":
    main()
