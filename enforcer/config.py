"""What the enforcer is told: one frozen value, the same from the command line, the environment and a file.

Strongest first: command line, NUMAKIN_* environment, TOML file (`--config`, or the runtime's drop-in file when the
runtime launches the plugin). An unknown key or a bad value is an error that names it. Read by the hook, so: standard
library only.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from placement.cpuset import CpuSet
from placement.errors import PlacementError

ENVIRONMENT = "NUMAKIN_"


class ConfigError(ValueError):
    """An option that can't be taken, worded for whoever wrote it."""


@dataclass(frozen=True, slots=True)
class Config:
    """Every option of `numakin-enforcer run`; the field's name with dashes is the flag, in capitals after NUMAKIN_
    the environment variable.
    """

    mode: str = "nri"
    nri_socket: str = "/var/run/nri/nri.sock"
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    plugin_index: str = "10"
    plugin_name: str = "numakin"
    node_name: str = ""
    extender: str = ""
    extender_ca: str = ""
    extender_cert: str = ""
    extender_key: str = ""
    extender_token: str = ""
    run_dir: str = "/run/numakin"
    sysfs: str = "/sys"
    procfs: str = "/proc"
    reserved_cpus: str = ""
    shared_pool: str = "members"
    prefer_closest_numa_nodes: str = "on"
    max_allowable_numa_nodes: float = 0
    podresources_socket: str = "/var/lib/kubelet/pod-resources/kubelet.sock"
    metrics_listen: str = "127.0.0.1:9464"
    heartbeat_s: float = 5.0
    observe: str = "auto"
    duty_cycle: float = 0.1
    window_s: float = 10.0
    move_budget: float = 2
    replay: str = ""
    log_level: str = "info"
    log_format: str = "text"

    def __post_init__(self) -> None:
        for option, check, allowed in _CHECKS:
            value = getattr(self, option)
            if not check(value):
                raise ConfigError(f"{option.replace('_', '-')}: {value!r} is not allowed; allowed: {allowed}")
        if bool(self.extender_cert) != bool(self.extender_key) or (self.extender_cert and not self.extender_ca):
            raise ConfigError("extender-cert and extender-key belong together, and need extender-ca")
        try:
            CpuSet.parse(self.reserved_cpus)
        except PlacementError as bad:
            raise ConfigError(f"reserved-cpus: {bad}") from bad

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Config:
        return cls(**json.loads(text))


def merged(
    flags: Mapping[str, Any], environment: Mapping[str, str], file_text: str = "", file_name: str = ""
) -> Config:
    """The configuration from all three places. flags: by field name, None where not given."""
    known = {one.name: one.type for one in fields(Config)}
    values = _from_file(file_text, file_name, known)
    for name in known:
        text = environment.get(ENVIRONMENT + name.upper())
        if text is not None:
            values[name] = _converted(name, text, f"environment variable {ENVIRONMENT}{name.upper()}")
    values.update({name: value for name, value in flags.items() if name in known and value is not None})
    return Config(**values)


def read_file(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {path}: {error}") from error


def _from_file(text: str, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name or 'config'}: not TOML: {error}") from error
    values = {}
    for key, value in table.items():
        field = key.replace("-", "_")
        if field not in known:
            allowed = ", ".join(one.replace("_", "-") for one in known)
            raise ConfigError(f"{name or 'config'}: unknown key {key!r}; known: {allowed}")
        values[field] = _converted(field, value, f"{name or 'config'}: {key}")
    return values


def _converted(field: str, value: Any, where: str) -> Any:
    if field in NUMBERS:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ConfigError(f"{where}: {value!r} is not a number") from None
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {value!r} is not text")
    return value


NUMBERS = frozenset({"max_allowable_numa_nodes", "heartbeat_s", "duty_cycle", "window_s", "move_budget"})

MOST_REPLICAS = 5
"""Replicas of the extender that are streamed to: two keep the scheduler served, each more costs every node a stream."""

LONGEST_SOCKET_PATH = 107
"""Bytes of sockaddr_un's path, without its end."""

_ADDRESS = re.compile(r"[^\s/,]*:\d{1,5}")
_ADDRESSES = re.compile(rf"{_ADDRESS.pattern}(,{_ADDRESS.pattern}){{0,{MOST_REPLICAS - 1}}}")

_CHECKS = (
    ("mode", lambda text: text in ("nri", "bypass"), "nri, bypass"),
    (
        "cri_socket",
        lambda text: text.removeprefix("unix://").startswith("/"),
        "the path of a unix socket, or unix:// and it",
    ),
    ("plugin_index", lambda text: re.fullmatch(r"\d\d", text), "two digits"),
    ("plugin_name", lambda text: re.fullmatch(r"[A-Za-z0-9_.+-]+", text), "letters, digits, '_', '.', '+' and '-'"),
    ("node_name", lambda text: re.fullmatch(r"[a-z0-9.-]{0,253}", text), "a Kubernetes node's name"),
    (
        "extender",
        lambda text: not text or _ADDRESSES.fullmatch(text),
        f"HOST:PORT, up to {MOST_REPLICAS} of them with commas between, or nothing",
    ),
    ("metrics_listen", lambda text: not text or _ADDRESS.fullmatch(text), "HOST:PORT, or nothing"),
    (
        "podresources_socket",
        lambda text: text == "off" or (text.startswith("/") and len(text.encode()) <= LONGEST_SOCKET_PATH),
        f"off, or an absolute path of at most {LONGEST_SOCKET_PATH} bytes",
    ),
    ("shared_pool", lambda text: text in ("members", "all"), "members, all"),
    ("prefer_closest_numa_nodes", lambda text: text in ("on", "off"), "on, off"),
    (
        "max_allowable_numa_nodes",
        lambda number: number >= 0 and number == int(number),
        "a whole number, 0 for no limit",
    ),
    ("heartbeat_s", lambda number: 0.1 <= number <= 60, "0.1 to 60 seconds"),
    ("observe", lambda text: text in ("auto", "off"), "auto, off"),
    ("duty_cycle", lambda number: 0 < number <= 1, "a share of time, over 0 and at most 1"),
    ("window_s", lambda number: 1 <= number <= 600, "1 to 600 seconds"),
    ("move_budget", lambda number: 0 <= number <= 100 and number == int(number), "a whole number from 0 to 100"),
    ("log_level", lambda text: text in ("debug", "info", "warning", "error"), "debug, info, warning, error"),
    ("log_format", lambda text: text in ("text", "json"), "text, json"),
)
