"""numakin-extender: the program. Everything is wired here, and nowhere else."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from flask import Flask

from extender.apiserver import ApiServerLink
from extender.cluster import Cluster
from extender.config import LISTENS, ExtenderConfig, host_and_port, load
from extender.kube.api import Api
from extender.kube.namespace_settings import NamespaceRow, NamespaceSettings
from extender.kube.objects import published
from extender.kube.objects.group_objects import GroupObjects
from extender.kube.objects.grouprows import GroupRow
from extender.kube.objects.saved_learning import SavedLearning
from extender.kube.publish import Desired, Unwanted
from extender.kube.readers import Readers
from extender.kube.tls.authorities import SCHEDULER
from extender.readiness import ReadinessGate
from extender.refused_pod_checks import RefusedPodChecks
from extender.regroup_rounds import RegroupRounds, RegroupTerms, regroup_thread
from extender.regroup_search import RegroupSearch
from extender.reports.server import Server
from extender.reports.session import SessionCallbacks
from extender.scheduler.access import authorise, common_name
from extender.scheduler.calls import SchedulerCalls
from extender.scheduler.metrics import Metrics
from extender.scheduler.routes import Readiness, create_app, create_health_app
from extender.scheduler.verbs import Verbs
from extender.serving import limits
from extender.serving.application import Application, Served, calm_collector, check_free
from extender.serving.http_service import HttpService
from extender.serving.refusals import LimitRefusals
from extender.serving.scheduler_answers import scheduler_answers
from extender.serving.streams import EventStreams
from extender.serving.wsgi import InTurn, wsgi_answers
from extender.settings import Settings
from extender.startup import connected, namespace, own_certificates, renewed, written
from extender.state.enforcer_health import EnforcerHealth
from extender.state.node_report import DecisionRow
from extender.state.pods import Changes, NodeRow, PodRow
from extender.state.told_groups import ToldRow
from extender.traffic.learner import Learner
from extender.views import regroup, traffic_view
from extender.views.group_metrics import GroupGauges
from extender.views.readout import Gauge, gauges, members
from extender.web.routes import Web
from extender.web.sampling import Sampling
from numakin.kubeconfig import BadKubeconfig
from numakin.placement.traffic.graph import Flow
from numakin.process.hours import Hours
from numakin.process.log import Log, set_up
from numakin.process.options import ConfigError
from numakin.process.threads import Standing, Threads, rows, worded
from numakin.process.woken import WokenThread
from numakin.wire.certificates import BadCertificate, Files

STOP_SECONDS = 2.0

PLANNING_SHARE = 0.1
"""The share of its time that a thread may spend on planning where groups go: requests of kube-scheduler come first."""

_log = Log("extender")


def _thread_gauges(standings: Iterable[Standing]) -> Iterator[Gauge]:
    """The state of the threads, for Prometheus: by name."""
    for name, text, by_thread in rows(standings):
        yield f"numakin_extender_{name}", text, "thread", by_thread


class Program(SessionCallbacks):
    """One extender in one process: the cluster, the two servers, the watch."""

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config
        self.metrics = Metrics()
        times = config.report_timeout, config.hold, config.group_hold, config.patience
        self.cluster = Cluster(Settings(*times, near=config.near))
        self.calls = SchedulerCalls(partial(Verbs, self.cluster, self.metrics, refuse=config.refuse), self.metrics)
        self.threads = Threads(Log("threads").failure)
        self.learner = Learner(self.cluster.learned, threads=self.threads, application_label=config.application_label)
        self.namespaces = NamespaceSettings()
        self.saved_learning = SavedLearning(self.learner.restored, lambda: self.cluster.known)
        self.groups = GroupObjects()
        self.web = Web(self.cluster)
        self.sampling = Sampling(self.web, threads=self.threads)
        self.metrics.gauges(lambda: gauges(self.cluster.figures(), self.cluster.live))
        self.metrics.gauges(lambda: traffic_view.gauges(self.cluster.known, self.learner.dropped_flows))
        self.metrics.gauges(lambda: regroup.gauges(self.cluster.regroupings))
        self._kube = connected(config)
        self._own_ca = own_certificates(config, self._kube, self.threads)
        own = self._own_ca.files if self._own_ca is not None else None
        http_files = own or Files(config.tls_cert, config.tls_key, config.tls_client_ca)
        self._http_tls = renewed("http", http_files, self.metrics)
        self._web_tls = renewed("web", replace(http_files, ca=""), self.metrics)
        grpc_files = Files(config.grpc_tls_cert, config.grpc_tls_key, config.grpc_tls_client_ca)
        self._grpc_tls = renewed("grpc", replace(own, ca="") if own else grpc_files, self.metrics)
        self.metrics.gauges(GroupGauges(self.cluster.figures))
        self.metrics.gauges(self._expiries)
        self.metrics.gauges(lambda: _thread_gauges(self.threads.standings()))
        self.metrics.gauges(self._configured)
        self._ending = False
        self._missing = "the gRPC port is not open yet"
        self._api: ApiServerLink | None = None
        self._server: Server | None = None
        self._refused_pod_checks: RefusedPodChecks | None = None
        self._reservations = WokenThread(
            "group reservations", self.cluster.reserve, share=PLANNING_SHARE, threads=self.threads
        )
        self._regrouping = RegroupSearch(
            self.cluster.regroup, config.regroup_period, busy=lambda: self.calls.busy, threads=self.threads
        )
        self._topologies = published.TopologyPublisher()
        self._regroup: WokenThread | None = None

    def application(self) -> Application:
        """What serves the HTTP ports: kube-scheduler's, people's, and that of probes and Prometheus."""
        config = self.config
        refusals = LimitRefusals(lambda limit: self.metrics.over_limit.labels(limit).inc())
        people = EventStreams(InTurn(self.app()))
        health = InTurn(create_health_app(self.metrics, self._readiness))
        small = limits.READER_BODY_BYTES
        served = {
            "http": Served(
                config.listen,
                HttpService(scheduler_answers(self.calls), limits.BODY_BYTES, refusals),
                self._http_tls,
                self._certified,
            ),
            "web": Served(config.web_listen, HttpService(wsgi_answers(people), small, refusals), self._web_tls),
            "health": Served(config.health_listen, HttpService(wsgi_answers(health), small, refusals)),
        }
        return Application(served, self.begin, self.end, ending=people.end, threads=self.threads, refusals=refusals)

    def app(self) -> Flask:
        """What people read."""
        app = create_app(self.cluster, self.metrics, self._readiness)
        self.web.add_to(app, namespace(self.config))
        if self.config.authorise_readers and self._kube is not None:
            authorise(app, Readers(self._kube))
        return app

    def _certified(self, certificate: Mapping[str, Any]) -> bool:
        """Whether who shows this certificate is kube-scheduler: our own CA also signs for the extender itself."""
        return not self.config.own_ca or common_name(certificate) == SCHEDULER

    def _readiness(self) -> Readiness:
        stale = self.threads.stale()
        essential = worded(standing for standing in stale if standing.essential)
        degraded = filter(None, (worded(standing for standing in stale if not standing.essential), self._alone))
        missing = self._missing or essential or self.gate.missing()
        return Readiness(missing, "; ".join(degraded), tuple if self._missing else self.gate.unreported)

    @property
    def _alone(self) -> str:
        """Why less is known than could be; empty when that was configured."""
        if self._kube is not None or not self.config.kube:
            return ""
        return "without an API server, pods are known from enforcers' reports alone"

    def begin(self, http: Mapping[str, str]) -> None:
        """Opens the gRPC port, then writes where everything is. http: the addresses of the HTTP ports, by name."""
        calm_collector()
        config = self.config
        if self._kube is None and self.config.kube:
            _log.warning(
                "no API server is configured: neither --kubeconfig nor a service account; pods are known from their "
                "enforcers' reports alone, and no nomination is made (--no-kube: that is meant)"
            )
        self.gate = ReadinessGate(config.enforcer_account, self._unseen, self._reported, config.readiness_timeout)
        self.learner.start()
        self.sampling.start()
        self._reservations.start()
        self._regrouping.start()
        if self._own_ca is not None:
            self._own_ca.start()
        if self._kube is not None:
            self._api = self._watched(self._kube)
            self.cluster.wait.asked = self.learner.awaited
        else:
            # Without an API server a pod is known from kube-scheduler's request at the earliest.
            self.cluster.wait.asked = self.learner.asked
        identify = None
        if self._api is not None and config.enforcer_account:
            identify = partial(self._api.node_of, account=config.enforcer_account)
        server = Server(self.cluster, self, config.grpc_listen, self._grpc_tls, identify, threads=self.threads)
        self._server = server
        server.start()
        if self._api is not None:
            self.metrics.gauges(self._api.gauges)
            self._api.start()
        if self._api is not None:
            self._regroup = self._evictions(self._api)
            self._regroup.start()
        if self._api is not None and config.refuse:
            self._refused_pod_checks = RefusedPodChecks(
                self.cluster.pods_to_retry, self._api.wake, threads=self.threads
            )
            self._refused_pod_checks.start()
        self._missing = ""
        host, _ = host_and_port("grpc_listen", config.grpc_listen)
        addresses = {**http, "grpc": f"{host}:{server.port}", "pid": os.getpid()}
        _log.info("ready", **addresses, kube=self._api is not None)
        if config.ready_file:
            written(Path(config.ready_file), msgspec.json.encode(addresses))

    def _watched(self, api: Api) -> ApiServerLink:
        return ApiServerLink(
            api, self.pods_changed, self.nodes_changed, self.groups_changed, self.published, threads=self.threads,
            namespaces=self.namespaces_changed, namespace=namespace(self.config), publish_s=self.config.publish_period,
            services=self.learner.services if self.config.service_names else None, terms=self.config.terms,
            policies=self.learner.policies if self.config.network_policies else None, busy=lambda: self.calls.busy,
            near=self.config.near, told=self.groups_told,
        )  # fmt: skip

    def _evictions(self, api: ApiServerLink) -> WokenThread:
        config = self.config
        hours = Hours.parse(config.regroup_hours) or Hours()
        rounds = RegroupRounds(
            self.cluster.promises, lambda: self.cluster.regroupings.plans, self.groups.rows, api.regrouping,
            RegroupTerms(config.regroup == "evict", config.regroup_budget, hours),
            lambda outcome: self.metrics.regroup_steps.labels(outcome).inc(),
        )  # fmt: skip
        return regroup_thread(rounds, self.threads)

    def _configured(self) -> Iterator[Gauge]:
        name, text = "numakin_extender_api_server_configured", "Whether it is known where the API server is."
        yield name, text, "", {"": float(self._kube is not None)}
        text = "Since the latest traffic that was learned from; NaN before the first."
        yield "numakin_extender_learning_age_seconds", text, "", {"": self.learner.age_s}
        halted = float(sum(bool(row.regroup.halted) for row in self.groups.rows().values()))
        text = "Groups of which nothing more is evicted, as it did not help."
        yield "numakin_extender_regroup_halted_groups", text, "", {"": halted}
        text = "Namespaces whose settings do not count, because too many have some."
        yield "numakin_extender_namespaces_left_out", text, "", {"": float(self.namespaces.left_out)}

    def end(self) -> None:
        """What was learned is complete before it is written for the last time."""
        self._missing = "shutting down"
        if self._server is not None:
            self._server.stop()
        self.sampling.stop()
        self._reservations.stop(STOP_SECONDS)
        self._regrouping.stop()
        if self._regroup is not None:
            self._regroup.stop(STOP_SECONDS)
        self.learner.stop(STOP_SECONDS)
        if self._own_ca is not None:
            self._own_ca.stop(STOP_SECONDS)
        self._ending = True
        if self._refused_pod_checks is not None:
            self._refused_pod_checks.stop(STOP_SECONDS)
        if self._api is not None:
            self._api.stop()

    def pods_changed(self, changes: Changes[PodRow]) -> None:
        """Called by the watch, on its own thread."""
        self.learner.pods(changes)
        self.gate.pods(changes)
        replan = self.cluster.replans(changes)
        nominations = self.cluster.apply_pods(changes)
        if replan:
            self._reservations.wake()
        if self._server is not None:
            self._server.nominate(nominations)

    def nodes_changed(self, changes: Changes[NodeRow]) -> None:
        self.gate.nodes(changes)
        if self.cluster.apply_nodes(changes):
            self._reservations.wake()
        self._topologies.nodes_changed(changes)

    def groups_changed(self, changes: Changes[GroupRow]) -> None:
        """Hands on what changed of AffinityGroup objects. Called by their watch, on its own thread."""
        self.saved_learning.changed(changes)
        self.groups.changed(changes)
        if self._regroup is not None:
            self._regroup.wake()
        specs = self.groups.specs()
        self.learner.set_group_specs(specs)
        waiting = self.cluster.set_group_specs(specs)
        if self._api is not None and self.config.refuse:
            self._api.wake(waiting)

    def groups_told(self, kind: str, changes: Changes[ToldRow]) -> None:
        """Hands on what other controllers' objects say of how many pods come together. Called by their watch."""
        self.cluster.told(kind, changes)
        self._reservations.wake()

    def namespaces_changed(self, changes: Changes[NamespaceRow]) -> None:
        """Hands on what changed of Namespace objects; enforcers are sent what is new to them. Called by their watch."""
        if (now := self.namespaces.after(changes)) == self.cluster.namespaces:
            return
        self.cluster.set_namespaces(now)
        self.learner.set_namespaces(now)
        if self._server is not None:
            self._server.set_namespaces(now)

    def _unseen(self) -> list[str]:
        return self._api.unseen() if self._api is not None else []

    def _reported(self, node: str) -> bool:
        return self.cluster.view(node) is not None

    def _expiries(self) -> Iterator[Gauge]:
        ports = {"http": self._http_tls, "web": self._web_tls, "grpc": self._grpc_tls}
        expires = {port: certificate.expires for port, certificate in ports.items() if certificate is not None}
        name = "numakin_extender_certificate_expiration_timestamp_seconds"
        yield name, "When the certificate in use ends, in seconds since 1970.", "port", expires

    def published(self) -> Iterator[Desired | Unwanted]:
        """First the groups, which hold what was learned."""
        picture, rows = self.cluster.picture(), dict(self.groups.rows())
        texts, known = self.saved_learning.texts(last=self._ending), self.cluster.known
        if self.saved_learning.current:
            for row in self.groups.forgotten({*members(picture), *known.members, *texts}, known):
                del rows[row.group]
                yield row.unwanted
        yield from published.groups(picture, texts, rows, self.cluster.regroupings)
        yield from self._topologies.objects(picture, self.cluster.live)

    def decided(self, node: str, row: DecisionRow) -> None:
        self.metrics.predictions.labels(row.outcome).inc()
        if self._api is not None:
            self._api.decided(node, row)
        _log.info(
            "decided", node=node, pod=f"{row.namespace}/{row.name}", container=row.container, event_kind=row.event,
            numa_nodes=row.numa_nodes, nomination=row.outcome,
        )  # fmt: skip

    def traffic(self, node: str, flows: tuple[Flow, ...]) -> None:
        self.learner.traffic(node, flows)

    def uses(self, node: str, milli: Mapping[str, int]) -> None:
        self.learner.uses(node, milli)

    def changed(self, node: str) -> None:
        if self._refused_pod_checks is not None:
            self._refused_pod_checks.changed(node)

    def health(self, node: str, health: EnforcerHealth) -> None:
        self.web.healths.reported(node, health)

    def counted(self, result: str) -> None:
        self.metrics.reports.labels(result).inc()


def main() -> None:
    try:
        config = load(sys.argv[1:], os.environ)
        set_up(config.log_level, config.log_format)
        for client in ("urllib3", "kubernetes"):  # at debug each of their requests: nothing of it is about us
            logging.getLogger(client).setLevel(logging.INFO)
        _log.debug("options", **msgspec.to_builtins(config))
        for option in LISTENS:
            check_free(option, getattr(config, option))
        program = Program(config)
    except (ConfigError, BadCertificate, BadKubeconfig) as bad:
        print(f"numakin-extender: {bad}", file=sys.stderr)
        sys.exit(2)
    program.application().run()


if __name__ == "__main__":
    main()
