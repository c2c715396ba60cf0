"""The enforcer's configuration: one frozen value, the same from the command line, the environment and a file.

Strongest first: command line, NUMAKIN_* environment, TOML file (`--config`, or the runtime's drop-in file when the
runtime launches the plugin). An unknown key or a bad value is an error that names it. Read by the hook, so: standard
library only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from enforcer.settings import policy_options
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.errors import PlacementError
from numakin.process.files import read_regular, worded
from numakin.process.hours import Hours

ENVIRONMENT = "NUMAKIN_"

METRICS_PORT = 16862
"""NUMA on a telephone's keys, after a 1. No convention has it on a node: exporters share 9100 to 9999 (9464 is
OpenTelemetry's), Kubernetes' own components 10248 to 10259, Ceph 6800 to 7568, node ports and the kernel's ephemeral
ones begin at 30000.
"""


PLUGIN_NAME = "numakin"
"""As an NRI plugin."""


class ConfigError(ValueError):
    """An option that can't be taken, worded for the operator."""


@dataclass(frozen=True, slots=True)
class Config:
    """Every option of `numakin-enforcer run`; the field's name with dashes is the flag, in capitals after NUMAKIN_
    the environment variable.
    """

    mode: str = "nri"
    nri_socket: str = "/var/run/nri/nri.sock"
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    plugin_index: str = "99"
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
    memory_tiers: str = ""
    policy_options: str = ""
    vm_runtimes: str = "kata*,firecracker*,krun*,runq*,urunc*"
    podresources_socket: str = "/var/lib/kubelet/pod-resources/kubelet.sock"
    podresources_listen: str = "off"
    metrics_listen: str = f"127.0.0.1:{METRICS_PORT}"
    observe: str = "0.1"
    window_s: float = 10.0
    moves: str = "make"
    move_hours: str = ""
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
        for option in ("reserved_cpus", "memory_tiers"):
            try:
                CpuSet.parse(getattr(self, option))
            except PlacementError as bad:
                raise ConfigError(f"{option.replace('_', '-')}: {bad}") from bad

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Config:
        return cls(**json.loads(text))


def merged(
    flags: Mapping[str, Any], environment: Mapping[str, str], file_text: str = "", file_name: str = ""
) -> Config:
    """The configuration from all three places. flags: by field name, None where not given."""
    known = {field.name: field.type for field in fields(Config)}
    values = _from_file(file_text, file_name, known) if file_text else {}
    for name in known:
        text = environment.get(ENVIRONMENT + name.upper())
        if text is not None:
            values[name] = _converted(name, text, f"environment variable {ENVIRONMENT}{name.upper()}")
    given = {name: value for name, value in flags.items() if name in known and value is not None}
    values.update({name: _converted(name, value, f"--{name.replace('_', '-')}") for name, value in given.items()})
    return Config(**values)


def read_file(path: str) -> str:
    try:
        return read_regular(path).decode()
    except OSError as error:
        raise ConfigError(f"config file {worded(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"config file {path}: not text: {error}") from error


def _from_file(text: str, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - 3 ms of a start, and most have no file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name or 'config'}: not TOML: {error}") from error
    values = {}
    for key, value in table.items():
        field = key.replace("-", "_")
        if field not in known:
            allowed = ", ".join(option.replace("_", "-") for option in known)
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


NUMBERS = frozenset({"window_s", "move_budget"})

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


def _whole(number: float, low: int, high: float) -> bool:
    return low <= number <= high and math.isfinite(number) and number == int(number)


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
    ("move_budget", lambda number: _whole(number, 0, 100), "a whole number from 0 to 100"),
    ("log_level", lambda text: text in ("debug", "info", "warning", "error"), "debug, info, warning, error"),
    ("log_format", lambda text: text in ("text", "json"), "text, json"),
)
