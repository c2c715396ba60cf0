"""What is counted in the observer, and what it counts of the hook's reports, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, disable_created_metrics

from enforcer.observer.endpoint.hook_metrics import HookCounts
from enforcer.settings.config import Config
from numakin.process.log import Log
from numakin.wire import report_pb2 as pb
from numakin.wire.certificates import Files, Renewed

log = Log("observer")

disable_created_metrics()  # a second series for each counter, which no dashboard needs


class Counters:
    """What is counted of decisions, as the hook reports them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._decisions = Counter(
            "numakin_enforcer_decisions_total", "Decisions, by what led to them.", ["event"], registry=self.registry
        )
        self.hook = HookCounts()
        self.registry.register(self.hook)
        self.hook_starts = Counter(
            "numakin_enforcer_hook_starts_total",
            "Starts of the hook process that the observer has seen.",
            registry=self.registry,
        )
        self.certificates_not_taken = Counter(
            "numakin_enforcer_certificates_not_taken_total",
            "Renewed certificates that can't be used: the last good ones serve on.",
            registry=self.registry,
        )
        self.podresources_failures = Counter(
            "numakin_enforcer_podresources_failures_total",
            "Calls that the kubelet's podresources API did not answer.",
            registry=self.registry,
        )

    def certificate(self, ours: Renewed) -> None:
        """What we show to the extender; its end is a metric from now on."""
        name = "numakin_enforcer_certificate_expiration_timestamp_seconds"
        text = "When the certificate in use ends, in seconds since 1970; only with --extender-cert."
        Gauge(name, text, registry=self.registry).set_function(lambda: ours.expires)

    def received(self, report: pb.Report) -> None:
        for decision in report.decisions:
            self._decisions.labels(event=decision.event).inc()


def secured(config: Config, counters: Counters) -> Renewed | None:
    """What the extender is dialled with, renewed as its files are; None where that is without TLS."""
    if not config.extender_ca:
        return None

    def complain(why: str) -> None:
        counters.certificates_not_taken.inc()
        log.error("renewed certificates not taken", why=why)

    certificate = Renewed(Files(config.extender_cert, config.extender_key, config.extender_ca), complain)
    if config.extender_cert:
        counters.certificate(certificate)
    return certificate
