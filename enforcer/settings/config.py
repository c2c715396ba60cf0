"""The enforcer's configuration: one frozen value. Its file is `--config`'s, or the runtime's drop-in file where that
launches the plugin. Read by the hook: standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from enforcer.settings import policy_options
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.errors import PlacementError
from numakin.process.hours import Hours
from numakin.process.options import ConfigError, option, read

__all__ = ["Config", "ConfigError", "merged"]

METRICS_PORT = 16862
"""NUMA on a telephone's keys, after a 1. No convention has it on a node: exporters share 9100 to 9999 (9464 is
OpenTelemetry's), Kubernetes' own components 10248 to 10259, Ceph 6800 to 7568, node ports and the kernel's ephemeral
ones begin at 30000.
"""

PLUGIN_NAME = "numakin"
"""As an NRI plugin."""


@dataclass(frozen=True, slots=True)
class Config:
    """Every option of `numakin-enforcer run`."""

    mode: str = option(
        "nri: a plugin of the runtime; bypass: for a runtime without NRI, followed over CRI, pinned a moment late",
        "nri|bypass",
        "nri",
    )
    nri_socket: str = option("the runtime's NRI socket", "PATH", "/var/run/nri/nri.sock")
    cri_socket: str = option("the runtime's CRI socket, for bypass", "PATH", "unix:///run/containerd/containerd.sock")
    plugin_index: str = option("two digits: where among the NRI plugins we are called", "INDEX", "99")
    node_name: str = option("this Kubernetes node's name (default: the host's name)", "NAME")
    extender: str = option(
        "HOST:PORT of the extender's gRPC port, several with commas between; none: decide alone", "HOST:PORT"
    )
    extender_ca: str = option(
        "the CA that signed the extender's certificate; none: no TLS; read anew at each dial", "FILE"
    )
    extender_cert: str = option("our own certificate, for an extender that demands one; read anew at each dial", "FILE")
    extender_key: str = option("its private key", "FILE")
    extender_token: str = option("the service account token that proves which node this is", "FILE")
    run_dir: str = option("folder for the lock and the hook's socket", "FOLDER", "/run/numakin")
    sysfs: str = option("where the machine is read from", "FOLDER", "/sys")
    procfs: str = option("where the kernel's facts are read from", "FOLDER", "/proc")
    reserved_cpus: str = option("CPUs that no member may use, such as 0-1", "CPUS")
    memory_tiers: str = option(
        "NUMA nodes of movable memory alone that members may spill to: CXL; not a GPU's", "TIERS"
    )
    policy_options: str = option(
        "how members are placed, NAME or NAME=VALUE with commas between. As the kubelet has them: "
        "prefer-closest-numa-nodes (on unless =false), max-allowable-numa-nodes=N, align-by-socket (restricted admits "
        "that), distribute-cpus-across-numa, distribute-cpus-across-cores. Ours: max-exclusive-cpus-per-namespace=N, "
        "unless its Namespace object says otherwise; shared-pool=all: every container of the node that no other owner "
        "keeps to fewer CPUs keeps off exclusive ones; span=cache: members share the CPUs of one last-level cache, "
        "while that has room, for pods without span.numakin.io; within-others: a member that another owner confines to "
        "several NUMA nodes is narrowed to one of them once it has started (not in bypass mode)",
        "OPTIONS",
    )
    vm_runtimes: str = option(
        "handlers of RuntimeClasses whose containers run in virtual machines, and are left open, with "
        "commas between and * for any characters; empty: none",
        "HANDLERS",
        "kata*,firecracker*,krun*,runq*,urunc*",
    )
    podresources_socket: str = option(
        "where the kubelet reports which devices containers have; off: it is not asked",
        "PATH|off",
        "/var/lib/kubelet/pod-resources/kubelet.sock",
    )
    podresources_listen: str = option(
        "a socket on which numakin answers as the kubelet's podresources API, with what it gave", "PATH|off", "off"
    )
    metrics_listen: str = option(
        "HOST:PORT of /metrics, /healthz and /readyz; empty: none", "HOST:PORT", f"127.0.0.1:{METRICS_PORT}"
    )
    observe: str = option("share of time in which traffic is counted; off: never", "SHARE|off", "0.1")
    window_s: float = option("seconds of traffic that are evaluated together", "SECONDS", 10.0)
    moves: str = option(
        "make: running members are moved to their kin; plan: moves are looked for and told, but none is made",
        "make|plan",
        "make",
    )
    move_hours: str = option(
        "hours of the day, in UTC, in which running members are moved, such as 22:00-06:00; empty: always",
        "HH:MM-HH:MM",
    )
    move_budget: float = option(
        "members in a hundred that are moved to their kin in one window on average, as many at the "
        "least; 0: none is ever moved",
        "N",
        2,
    )
    replay: str = option("file of recorded traffic to learn from instead of the kernel's", "FILE")
    log_level: str = option("the least severe level logged", "debug|info|warning|error", "info")
    log_format: str = option("text for people, json for machines", "text|json", "text")

    def __post_init__(self) -> None:
        for name, check, allowed in _CHECKS:
            value = getattr(self, name)
            if not check(value):
                raise ConfigError(f"{name.replace('_', '-')}: {value!r} is not allowed; allowed: {allowed}")
        if bool(self.extender_cert) != bool(self.extender_key) or (self.extender_cert and not self.extender_ca):
            raise ConfigError("extender-cert and extender-key belong together, and need extender-ca")
        for name in ("reserved_cpus", "memory_tiers"):
            try:
                CpuSet.parse(getattr(self, name))
            except PlacementError as bad:
                raise ConfigError(f"{name.replace('_', '-')}: {bad}") from bad

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Config:
        return cls(**json.loads(text))


def merged(
    flags: Mapping[str, Any], environment: Mapping[str, str], file_text: str = "", file_name: str = ""
) -> Config:
    """The configuration from all three places. flags: by field name, None where not given."""
    return read(Config, flags, environment, file_text, file_name or "config")


MOST_REPLICAS = 5
"""Replicas of the extender that are streamed to: two keep the scheduler served, each more costs every node a stream."""

LONGEST_SOCKET_PATH = 107
"""Bytes of sockaddr_un's path, without its end."""

LAST_PORT = 65_535

LONGEST_HANDLERS = 1024
"""Characters of `vm-runtimes`: a RuntimeClass's handler is a DNS label, of at most 63."""

_ADDRESS = re.compile(r"[^\s/,]*:(\d{1,5})")


def _addresses(text: str, most: int = 1) -> bool:
    """HOST:PORT, at most so many with commas between."""
    ports = [match and int(match[1]) for match in map(_ADDRESS.fullmatch, text.split(","))]
    return len(ports) <= most and all(port is not None and port <= LAST_PORT for port in ports)


def _share_or_off(text: str) -> bool:
    return text == "off" or (bool(re.fullmatch(r"\d(\.\d+)?", text)) and 0 < float(text) <= 1)


def _off_or_path(text: str) -> bool:
    return text == "off" or (text.startswith("/") and len(text.encode()) <= LONGEST_SOCKET_PATH)


_OFF_OR_PATH = f"off, or an absolute path of at most {LONGEST_SOCKET_PATH} bytes"

_HOOK_SOCKET = "/hook.sock"

_CHECKS = (
    ("mode", lambda text: text in ("nri", "bypass"), "nri, bypass"),
    (
        "nri_socket",
        lambda text: text and len(text.encode()) <= LONGEST_SOCKET_PATH,
        f"the path of a unix socket, at most {LONGEST_SOCKET_PATH} bytes",
    ),
    (
        "run_dir",
        lambda text: text and len((text + _HOOK_SOCKET).encode()) <= LONGEST_SOCKET_PATH,
        f"a folder's path, at most {LONGEST_SOCKET_PATH - len(_HOOK_SOCKET)} bytes: there is a unix socket in it",
    ),
    (
        "cri_socket",
        lambda text: text.removeprefix("unix://").startswith("/"),
        "the path of a unix socket, or unix:// and it",
    ),
    ("plugin_index", lambda text: re.fullmatch(r"\d\d", text), "two digits"),
    ("node_name", lambda text: re.fullmatch(r"[a-z0-9.-]{0,253}", text), "a Kubernetes node's name"),
    (
        "extender",
        lambda text: not text or _addresses(text, MOST_REPLICAS),
        f"HOST:PORT, up to {MOST_REPLICAS} of them with commas between, or nothing",
    ),
    ("metrics_listen", lambda text: not text or _addresses(text), "HOST:PORT, or nothing"),
    ("podresources_socket", _off_or_path, _OFF_OR_PATH),
    ("podresources_listen", _off_or_path, _OFF_OR_PATH),
    ("policy_options", lambda text: policy_options.parsed(text) is not None, policy_options.IN_WORDS),
    (
        "vm_runtimes",
        lambda text: re.fullmatch(r"([a-z0-9.*-]+(,[a-z0-9.*-]+)*)?", text) and len(text) <= LONGEST_HANDLERS,
        f"handlers of RuntimeClasses with commas between, * for any characters, at most {LONGEST_HANDLERS} characters",
    ),
    ("observe", _share_or_off, "a share of time, over 0 and at most 1, or off"),
    ("window_s", lambda number: 1 <= number <= 600, "1 to 600 seconds"),
    ("moves", lambda text: text in ("make", "plan"), "make, plan"),
    ("move_hours", Hours.parse, "hours of the day in UTC, as 22:00-06:00, or nothing for always"),
    ("move_budget", lambda number: 0 <= number <= 100 and number == int(number), "a whole number from 0 to 100"),
    ("log_level", lambda text: text in ("debug", "info", "warning", "error"), "debug, info, warning, error"),
    ("log_format", lambda text: text in ("text", "json"), "text, json"),
)
