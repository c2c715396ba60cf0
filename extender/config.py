"""The extender's options: one frozen value, built once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, NoReturn

from extender.kube.lease import LeaseDurations
from extender.kube.publish import EVERY_S
from extender.state.node_domains import label_keys
from numakin.placement.model.names import is_label_key
from numakin.process.hours import Hours
from numakin.process.options import PREFIX, ConfigError, add_to, flag, option, read, read_file
from numakin.process.version import VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderConfig:
    """Everything that can be set. Times in seconds; addresses HOST:PORT; an empty path means not set."""

    listen: str = option(
        "where kube-scheduler calls; without TLS an address of this host alone; port 0 takes a free one",
        "HOST:PORT",
        "127.0.0.1:8080",
    )
    grpc_listen: str = option(
        "where enforcers stream their reports; port 0 takes a free one", "HOST:PORT", "0.0.0.0:8081"
    )
    health_listen: str = option(
        "where the kubelet probes and Prometheus scrape, without TLS", "HOST:PORT", "0.0.0.0:8082"
    )
    web_listen: str = option(
        "where people read: the web page and /api/v1; over TLS where kube-scheduler's port is",
        "HOST:PORT",
        "0.0.0.0:8083",
    )
    kubeconfig: str = option(
        "how to reach the API server; without it the pod's own service account is used, if any", "FILE"
    )
    kube: bool = option(
        "watch pods and nodes at the API server (--no-kube: know pods from the enforcers' reports alone)", default=True
    )
    namespace: str = option("where the Lease of the replicas is; by default the pod's own, else numakin", "NAMESPACE")
    lease_duration: int = option(
        "how long after its last renewal the replica that writes keeps the Lease; over --renew-deadline", "SECONDS", 15
    )
    renew_deadline: float = option(
        "how long the replica that writes goes on when it can't renew its Lease; over 1.2 x --retry-period",
        "SECONDS",
        10.0,
    )
    retry_period: float = option("between two reads of the Lease", "SECONDS", 2.0)
    publish_period: float = option(
        "between two looks for what is to be published of groups and nodes, up to 15 s more while pods are scheduled",
        "SECONDS",
        EVERY_S,
    )
    enforcer_account: str = option(
        "the enforcers' service account: each must prove by its token which node it speaks for; empty: none is asked",
        "NAMESPACE:NAME",
    )
    readiness_timeout: float = option(
        "how long at most a new replica waits for enforcers' reports and lists before it is ready", "SECONDS", 60.0
    )
    report_timeout: float = option(
        "a node without a report for so long counts as without an enforcer and scores 0", "SECONDS", 60.0
    )
    hold: float = option(
        "how long a scored pod, or a bound one that runs, holds room until its enforcer reports it", "SECONDS", 30.0
    )
    group_hold: float = option(
        "how long room is held for a group's pods that wait for a node, against other groups, while none of them "
        "is created, bound or deleted; 0: none is held",
        "SECONDS",
        60.0,
    )
    regroup_period: float = option(
        "between two searches for groups that are cut over nodes and could be together; 0: none is made",
        "SECONDS",
        10.0,
    )
    patience: float = option(
        "how long an answer waits for a pod that the watch has not shown yet; below kube-scheduler's httpTimeout",
        "SECONDS",
        0.25,
    )
    refuse: bool = option(
        "let /filter refuse nodes for pods of policy restricted and single-numa-node; needs the preempt verb",
        default=False,
    )
    regroup: Literal["report", "evict"] = option(
        "report groups that could be together again, or evict pods for it that say so by annotation", default="report"
    )
    regroup_budget: int = option(
        "opted-in pods in a hundred that it evicts in an hour, as many at the least; 0: none", "N", 2
    )
    regroup_hours: str = option(
        "hours of the day, in UTC, in which it evicts, such as 22:00-06:00; empty: always", "HH:MM-HH:MM"
    )
    tls_cert: str = option(
        "certificate chain (PEM) of the HTTP ports, renewed under way; without it: plain HTTP", "FILE"
    )
    tls_key: str = option("its private key", "FILE")
    tls_client_ca: str = option("let in only kube-schedulers with a client certificate signed by this CA", "FILE")
    service_names: bool = option(
        "expect a pod to talk to the Services of its namespace that its containers' environment and arguments name",
        default=True,
    )
    network_policies: bool = option(
        "expect workloads to talk that NetworkPolicies let talk to each other", default=True
    )
    application_label: str = option(
        "of pods, such as app.kubernetes.io/part-of: those with different values share no group found by traffic",
        "LABEL",
    )
    near_labels: str = option(
        "of nodes, such as example.com/rack, the nearest first: nodes alike in it are near each other, before "
        "topology.kubernetes.io/zone and region, which count anyway",
        "LABEL,...",
    )
    own_ca: bool = option(
        "TLS by numakin's own CA, in Secret numakin-own-ca; kube-scheduler must show its certificate", default=False
    )
    authorise_readers: bool = option(
        "answer below /api/ only those whom the API server lets list AffinityGroups, by a bearer token", default=False
    )
    grpc_tls_cert: str = option(
        "certificate chain (PEM) of the gRPC port, renewed under way; without it: no TLS", "FILE"
    )
    grpc_tls_key: str = option("its private key", "FILE")
    grpc_tls_client_ca: str = option("demand client certificates signed by this CA from enforcers", "FILE")
    log_level: Literal["debug", "info", "warning", "error"] = option("the least severe level logged", default="info")
    log_format: Literal["text", "json"] = option("text for people, json for machines", default="text")
    ready_file: str = option("written when the ports answer: their addresses, as JSON", "FILE")

    def __post_init__(self) -> None:
        self._check_addresses()
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{flag(name)} must be within {low:g}..{high:g}, not {value:g}")
        try:
            _ = self.terms
        except ValueError as bad:
            raise ConfigError(f"--{bad}") from bad
        if self.enforcer_account and not _ACCOUNT.fullmatch(self.enforcer_account):
            raise ConfigError(f"--enforcer-account must be NAMESPACE:NAME, not {self.enforcer_account!r}")
        if self.application_label and not is_label_key(self.application_label):
            raise ConfigError(f"--application-label must be a label's key, not {self.application_label!r}")
        if wrong := next((label for label in self._near_labels if not is_label_key(label)), None):
            raise ConfigError(f"--near-labels must be labels' keys, separated by commas, not {wrong!r}")
        if len(self._near_labels) > MOST_NEAR_LABELS:
            raise ConfigError(f"--near-labels must be {MOST_NEAR_LABELS} labels at most, not {len(self._near_labels)}")
        if self.namespace and not _NAMESPACE.fullmatch(self.namespace):
            raise ConfigError(f"--namespace must be a namespace's name, not {self.namespace!r}")
        if Hours.parse(self.regroup_hours) is None:
            raise ConfigError(
                f"--regroup-hours must be hours of the day in UTC, as 22:00-06:00, or nothing for always, not "
                f"{self.regroup_hours!r}"
            )
        if self.regroup == "evict" and not self.kube:
            raise ConfigError("--regroup evict needs an API server: --no-kube is not for use with it")
        ready = Path(self.ready_file)
        if self.ready_file and (ready.is_dir() or not ready.parent.is_dir()):
            raise ConfigError(f"--ready-file must be a file in a folder that is there, not {self.ready_file!r}")
        if self.own_ca and (self.tls_cert or self.grpc_tls_cert):
            raise ConfigError("--own-ca makes the certificates: --tls-cert and --grpc-tls-cert are not for use with it")
        for prefix in ("tls", "grpc_tls"):
            cert, key, ca = (getattr(self, f"{prefix}_{part}") for part in ("cert", "key", "client_ca"))
            if bool(cert) != bool(key) or (ca and not cert):
                raise ConfigError(f"{flag(prefix)}-cert and {flag(prefix)}-key belong together")

    def _check_addresses(self) -> None:
        taken: dict[str, str] = {}
        for name in LISTENS:
            address = getattr(self, name)
            if host_and_port(name, address)[1] and taken.setdefault(address, name) != name:
                raise ConfigError(
                    f"{flag(taken[address])} and {flag(name)} are both {address}: each needs a port of its own"
                )
        if not (self.tls_cert or self.own_ca or _is_loopback(host_and_port("listen", self.listen)[0])):
            raise ConfigError(
                f"--listen {self.listen}: without TLS kube-scheduler's port is for this host alone, such as "
                "127.0.0.1:8080; for others --own-ca, or --tls-cert and --tls-key"
            )

    @property
    def _near_labels(self) -> list[str]:
        return [label for text in self.near_labels.split(",") if (label := text.strip())]

    @property
    def near(self) -> tuple[str, ...]:
        """The labels by which nodes are near each other, the nearest first."""
        return label_keys(self._near_labels)

    @property
    def terms(self) -> LeaseDurations:
        """How the replicas agree on the one that writes."""
        return LeaseDurations(self.lease_duration, self.renew_deadline, self.retry_period)


_ACCOUNT = re.compile(r"[a-z0-9.-]+:[a-z0-9.-]+")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

MOST_NEAR_LABELS = 4
"""What is near is weighed over each of them for each pod."""

LISTENS = ("listen", "grpc_listen", "health_listen", "web_listen")
"""The options that name a port."""

_RANGES = (
    ("lease_duration", 1, 3600),
    ("renew_deadline", 0.1, 3600),
    ("retry_period", 0.1, 3600),
    ("publish_period", 0.1, 3600),
    ("readiness_timeout", 1, 3600),
    ("report_timeout", 1, 3600),
    ("hold", 1, 3600),
    ("group_hold", 0, 3600),
    ("regroup_period", 0, 3600),
    ("patience", 0, 60),
    ("regroup_budget", 0, 100),
)

_EXAMPLES = """\
examples:
  numakin-extender                                    as in the Deployment: everything from the pod's service account
  numakin-extender --no-kube                          no API server: pods are known from their enforcers' reports
  numakin-extender --config extender.toml             a file; flags and NUMAKIN_* variables win over it

The scheduler's side is scheduler-config/kube-scheduler-config.yaml.
"""


def load(arguments: Sequence[str], environment: Mapping[str, str]) -> ExtenderConfig:
    """ConfigError says which option is wrong and what is allowed."""
    flags = vars(_parser().parse_args(arguments))
    path = flags["config"] or environment.get(f"{PREFIX}CONFIG")
    text = read_file(path) if path else ""
    return read(ExtenderConfig, flags, environment, text, str(path), quoted=False)


def host_and_port(name: str, address: str) -> tuple[str, int]:
    """The two halves of HOST:PORT; an IPv6 host is in brackets."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{flag(name)} must be HOST:PORT, not {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(host: str) -> bool:
    """Whether only this host reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Parser(argparse.ArgumentParser):
    """Without the whole usage before each error."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="numakin-extender",
        description="Scores nodes for kube-scheduler by what each node's enforcer would decide for the pod.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"numakin-extender {VERSION}")
    parser.add_argument("--config", metavar="FILE", help="options as TOML, by their names below")
    add_to(parser, ExtenderConfig)
    return parser
