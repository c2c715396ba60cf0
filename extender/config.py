"""The extender's options: one frozen value, built once from flags over environment over file.

A file is TOML with the options' own names as keys (`listen = "127.0.0.1:8080"`); the environment has
them as NUMAKIN_LISTEN. An unknown key or a value of the wrong type is an error that names it.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_type_hints

import msgspec

from extender.kube.lease import LeaseDurations
from extender.kube.publish import EVERY_S
from extender.state.node_domains import label_keys
from numakin.placement.model.names import is_label_key
from numakin.process.files import read_regular, worded
from numakin.process.hours import Hours
from numakin.process.version import VERSION

PREFIX = "NUMAKIN_"


class BadConfig(ValueError):
    """An option that is not taken, worded for the person who wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderConfig:
    """Everything that can be set. Times in seconds; addresses HOST:PORT; an empty path means not set."""

    listen: str = "127.0.0.1:8080"
    grpc_listen: str = "0.0.0.0:8081"
    health_listen: str = "0.0.0.0:8082"
    web_listen: str = "0.0.0.0:8083"
    kubeconfig: str = ""
    kube: bool = True
    namespace: str = ""
    lease_duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    publish_period: float = EVERY_S
    enforcer_account: str = ""
    readiness_timeout: float = 60.0
    report_timeout: float = 60.0
    hold: float = 30.0
    group_hold: float = 60.0
    regroup_period: float = 10.0
    patience: float = 0.25
    refuse: bool = False
    regroup: Literal["report", "evict"] = "report"
    regroup_budget: int = 2
    regroup_hours: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    service_names: bool = True
    network_policies: bool = True
    application_label: str = ""
    near_labels: str = ""
    own_ca: bool = False
    authorise_readers: bool = False
    grpc_tls_cert: str = ""
    grpc_tls_key: str = ""
    grpc_tls_client_ca: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    ready_file: str = ""

    def __post_init__(self) -> None:
        self._check_addresses()
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise BadConfig(f"{_flag(name)} must be within {low:g}..{high:g}, not {value:g}")
        try:
            _ = self.terms
        except ValueError as bad:
            raise BadConfig(f"--{bad}") from bad
        if self.enforcer_account and not _ACCOUNT.fullmatch(self.enforcer_account):
            raise BadConfig(f"--enforcer-account must be NAMESPACE:NAME, not {self.enforcer_account!r}")
        if self.application_label and not is_label_key(self.application_label):
            raise BadConfig(f"--application-label must be a label's key, not {self.application_label!r}")
        if wrong := next((label for label in self._near_labels if not is_label_key(label)), None):
            raise BadConfig(f"--near-labels must be labels' keys, separated by commas, not {wrong!r}")
        if len(self._near_labels) > MOST_NEAR_LABELS:
            raise BadConfig(f"--near-labels must be {MOST_NEAR_LABELS} labels at most, not {len(self._near_labels)}")
        if self.namespace and not _NAMESPACE.fullmatch(self.namespace):
            raise BadConfig(f"--namespace must be a namespace's name, not {self.namespace!r}")
        if Hours.parse(self.regroup_hours) is None:
            raise BadConfig(
                f"--regroup-hours must be hours of the day in UTC, as 22:00-06:00, or nothing for always, not "
                f"{self.regroup_hours!r}"
            )
        if self.regroup == "evict" and not self.kube:
            raise BadConfig("--regroup evict needs an API server: --no-kube is not for use with it")
        ready = Path(self.ready_file)
        if self.ready_file and (ready.is_dir() or not ready.parent.is_dir()):
            raise BadConfig(f"--ready-file must be a file in a folder that is there, not {self.ready_file!r}")
        if self.own_ca and (self.tls_cert or self.grpc_tls_cert):
            raise BadConfig("--own-ca makes the certificates: --tls-cert and --grpc-tls-cert are not for use with it")
        for prefix in ("tls", "grpc_tls"):
            cert, key, ca = (getattr(self, f"{prefix}_{part}") for part in ("cert", "key", "client_ca"))
            if bool(cert) != bool(key) or (ca and not cert):
                raise BadConfig(f"{_flag(prefix)}-cert and {_flag(prefix)}-key belong together")

    def _check_addresses(self) -> None:
        taken: dict[str, str] = {}
        for name in LISTENS:
            address = getattr(self, name)
            if host_and_port(name, address)[1] and taken.setdefault(address, name) != name:
                raise BadConfig(
                    f"{_flag(taken[address])} and {_flag(name)} are both {address}: each needs a port of its own"
                )
        if not (self.tls_cert or self.own_ca or _is_loopback(host_and_port("listen", self.listen)[0])):
            raise BadConfig(
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

_HELP: Mapping[str, tuple[str, str]] = {
    "listen": (
        "HOST:PORT",
        "where kube-scheduler calls; without TLS an address of this host alone; port 0 takes a free one",
    ),
    "grpc_listen": ("HOST:PORT", "where enforcers stream their reports; port 0 takes a free one"),
    "health_listen": ("HOST:PORT", "where the kubelet probes and Prometheus scrape, without TLS"),
    "web_listen": ("HOST:PORT", "where people read: the web page and /api/v1; over TLS where kube-scheduler's port is"),
    "kubeconfig": ("FILE", "how to reach the API server; without it the pod's own service account is used, if any"),
    "kube": ("", "watch pods and nodes at the API server (--no-kube: know pods from the enforcers' reports alone)"),
    "namespace": ("NAMESPACE", "where the Lease of the replicas is; by default the pod's own, else numakin"),
    "lease_duration": (
        "SECONDS",
        "how long after its last renewal the replica that writes keeps the Lease; over --renew-deadline",
    ),
    "renew_deadline": (
        "SECONDS",
        "how long the replica that writes goes on when it can't renew its Lease; over 1.2 x --retry-period",
    ),
    "retry_period": ("SECONDS", "between two reads of the Lease"),
    "publish_period": (
        "SECONDS",
        ("between two looks for what is to be published of groups and nodes, up to 15 s more while pods are scheduled"),
    ),
    "enforcer_account": (
        "NAMESPACE:NAME",
        "the enforcers' service account: each must prove by its token which node it speaks for; empty: none is asked",
    ),
    "readiness_timeout": (
        "SECONDS",
        "how long at most a new replica waits for enforcers' reports and lists before it is ready",
    ),
    "report_timeout": ("SECONDS", "a node without a report for so long counts as without an enforcer and scores 0"),
    "hold": ("SECONDS", "how long a scored pod, or a bound one that runs, holds room until its enforcer reports it"),
    "group_hold": (
        "SECONDS",
        (
            "how long room is held for a group's pods that wait for a node, against other groups, while none of them "
            "is created, bound or deleted; 0: none is held"
        ),
    ),
    "regroup_period": (
        "SECONDS",
        "between two searches for groups that are cut over nodes and could be together; 0: none is made",
    ),
    "patience": (
        "SECONDS",
        "how long an answer waits for a pod that the watch has not shown yet; below kube-scheduler's httpTimeout",
    ),
    "refuse": (
        "",
        "let /filter refuse nodes for pods of policy restricted and single-numa-node; needs the preempt verb",
    ),
    "regroup": (
        "",
        "report groups that could be together again, or evict pods for it that say so by annotation",
    ),
    "regroup_budget": ("N", "opted-in pods in a hundred that it evicts in an hour, as many at the least; 0: none"),
    "regroup_hours": (
        "HH:MM-HH:MM",
        "hours of the day, in UTC, in which it evicts, such as 22:00-06:00; empty: always",
    ),
    "tls_cert": ("FILE", "certificate chain (PEM) of the HTTP ports, renewed under way; without it: plain HTTP"),
    "tls_key": ("FILE", "its private key"),
    "tls_client_ca": ("FILE", "let in only kube-schedulers with a client certificate signed by this CA"),
    "service_names": (
        "",
        "expect a pod to talk to the Services of its namespace that its containers' environment and arguments name",
    ),
    "network_policies": (
        "",
        "expect workloads to talk that NetworkPolicies let talk to each other",
    ),
    "application_label": (
        "LABEL",
        "of pods, such as app.kubernetes.io/part-of: those with different values share no group found by traffic",
    ),
    "near_labels": (
        "LABEL,...",
        (
            "of nodes, such as example.com/rack, the nearest first: nodes alike in it are near each other, before "
            "topology.kubernetes.io/zone and region, which count anyway"
        ),
    ),
    "own_ca": (
        "",
        "TLS by numakin's own CA, in Secret numakin-own-ca; kube-scheduler must show its certificate",
    ),
    "authorise_readers": (
        "",
        "answer below /api/ only those whom the API server lets list AffinityGroups, by a bearer token",
    ),
    "grpc_tls_cert": ("FILE", "certificate chain (PEM) of the gRPC port, renewed under way; without it: no TLS"),
    "grpc_tls_key": ("FILE", "its private key"),
    "grpc_tls_client_ca": ("FILE", "demand client certificates signed by this CA from enforcers"),
    "log_level": ("LEVEL", "the least severe level logged"),
    "log_format": ("FORMAT", "text for people, json for machines"),
    "ready_file": ("FILE", "written when the ports answer: their addresses, as JSON"),
}

_EXAMPLES = """\
examples:
  numakin-extender                                    as in the Deployment: everything from the pod's service account
  numakin-extender --no-kube                          no API server: pods are known from their enforcers' reports
  numakin-extender --config extender.toml             a file; flags and NUMAKIN_* variables win over it

The scheduler's side is scheduler-config/kube-scheduler-config.yaml.
"""


def load(arguments: Sequence[str], environment: Mapping[str, str]) -> ExtenderConfig:
    """BadConfig says which option is wrong and what is allowed."""
    flags = {name: value for name, value in vars(_parser().parse_args(arguments)).items() if value is not None}
    path = flags.pop("config", None) or environment.get(f"{PREFIX}CONFIG")
    merged = {**(_file(Path(path)) if path else {}), **_environment(environment), **flags}
    return _converted(merged, strict=False)


def host_and_port(name: str, address: str) -> tuple[str, int]:
    """The two halves of HOST:PORT; an IPv6 host is in brackets."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise BadConfig(f"{_flag(name)} must be HOST:PORT, not {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(host: str) -> bool:
    """Whether only this host reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _file(path: Path) -> dict[str, Any]:
    """Strict types: in a file a number is written as a number."""
    try:
        written = tomllib.loads(read_regular(path).decode())
    except OSError as bad:
        raise BadConfig(f"--config: {worded(bad)}") from bad
    except ValueError as bad:  # TOML's errors, and those of UTF-8
        raise BadConfig(f"--config: {path}: not TOML: {bad}") from bad
    options = {key.replace("-", "_"): value for key, value in written.items()}
    unknown = sorted(options.keys() - _HELP.keys())
    if unknown:
        raise BadConfig(f"--config: {path}: unknown option {unknown[0]!r}; known: {', '.join(_HELP)}")
    try:
        _converted(options, strict=True)
    except BadConfig as bad:
        raise BadConfig(f"--config: {path}: {bad}") from bad
    return options


def _converted(options: Mapping[str, Any], *, strict: bool) -> ExtenderConfig:
    try:
        return msgspec.convert(options, ExtenderConfig, strict=strict)
    except msgspec.ValidationError as bad:
        wrong = re.search(r"at `\$\.(\w+)`", str(bad))
        if wrong is None:
            raise BadConfig(str(bad)) from bad
        kind = get_type_hints(ExtenderConfig)[wrong[1]]
        allowed = _KINDS.get(kind) or f"one of {', '.join(get_args(kind))}"
        raise BadConfig(f"{_flag(wrong[1])} must be {allowed}, not {options[wrong[1]]!r}") from bad


_KINDS: Mapping[object, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[variable] for name in _HELP if (variable := PREFIX + name.upper()) in environment}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


class _Parser(argparse.ArgumentParser):
    """Without the whole usage before each error."""

    def error(self, message: str) -> NoReturn:
        raise BadConfig(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="numakin-extender",
        description="Scores nodes for kube-scheduler by what each node's enforcer would decide for the pod.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"numakin-extender {VERSION}")
    parser.add_argument("--config", metavar="FILE", help="options as TOML, by their names below")
    kinds = get_type_hints(ExtenderConfig)
    for field in fields(ExtenderConfig):
        metavar, text = _HELP[field.name]
        if kinds[field.name] is bool:
            action = argparse.BooleanOptionalAction
            parser.add_argument(_flag(field.name), action=action, default=None, help=text)
            continue
        choices = get_args(kinds[field.name]) or None
        shown = f"{text} (default: {field.default})" if field.default != "" else text
        parser.add_argument(_flag(field.name), metavar=None if choices else metavar, choices=choices, help=shown)
    return parser
