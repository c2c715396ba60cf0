"""A kubeconfig, checked before and after the `kubernetes` package reads it: the package takes much that can't work
without a word, and meets the rest with errors of its own insides.
"""

from __future__ import annotations

import base64
import logging
import shutil
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from numakin.process.files import read_regular


class BadKubeconfig(ValueError):
    """The kubeconfig, or the service account's files, can't be used; worded for the person who named them."""


def user_of(path: str) -> Mapping[str, Any]:
    """The current context's user. BadKubeconfig when it is no kubeconfig, or what its context names is not there."""
    config = _read(path)
    name = config.get("current-context")
    if not name:
        raise BadKubeconfig("no current-context: choose one by `kubectl config use-context NAME`")
    context = _named(config, "context", name)
    cluster = _named(config, "cluster", context.get("cluster"))
    _check_server(cluster.get("server"))
    _check_data(cluster, "certificate-authority-data")
    user = _named(config, "user", context["user"]) if context.get("user") else {}
    _check_data(user, "client-certificate-data", "client-key-data")
    command = (user.get("exec") or {}).get("command")
    if command and shutil.which(command) is None:
        raise BadKubeconfig(f"the user's exec command {command!r} is not there: install it where this program runs")
    return user


def _read(path: str) -> Mapping[str, Any]:
    # The package reads it by PyYAML too.
    import yaml  # noqa: PLC0415

    try:
        config = yaml.safe_load(read_regular(path))
    except OSError as bad:
        raise BadKubeconfig(bad.strerror or str(bad)) from bad
    except yaml.MarkedYAMLError as bad:
        line = f" in line {bad.problem_mark.line + 1}" if bad.problem_mark else ""
        raise BadKubeconfig(f"not YAML: {bad.problem}{line}") from bad
    except (yaml.YAMLError, UnicodeDecodeError) as bad:
        raise BadKubeconfig(f"not YAML: {str(bad).splitlines()[0]}") from bad
    if not isinstance(config, dict) or not config:
        raise BadKubeconfig("holds no kubeconfig: clusters, users, contexts and current-context are wanted")
    return config


def _named(config: Mapping[str, Any], kind: str, name: object) -> Mapping[str, Any]:
    """The entry of that name in the list of its kind."""
    rows = config.get(f"{kind}s")
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    entry = next((row.get(kind) for row in rows if row.get("name") == name), None)
    if not isinstance(entry, dict):
        known = ", ".join(str(row.get("name")) for row in rows) or "none"
        raise BadKubeconfig(f"it has no {kind} {name!r}; its {kind}s: {known}")
    return entry


def _check_data(entry: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        if key not in entry:
            continue
        try:
            base64.b64decode("".join(entry[key].split()), validate=True)
        except (ValueError, AttributeError) as bad:
            raise BadKubeconfig(f"{key} is not base64: write the PEM file's content by `base64 -w0`") from bad


def _check_server(server: object) -> None:
    try:
        where = urlsplit(server) if isinstance(server, str) else urlsplit("")
        good = where.scheme in ("http", "https") and bool(where.hostname) and where.port != 0
    except ValueError:
        good = False
    if not good:
        raise BadKubeconfig(f"the cluster's server must be https://HOST:PORT, not {server!r}")


@contextmanager
def overheard() -> Iterator[list[str]]:
    """What the package logs, by Python's root logger, where it should raise; it is kept from the log."""
    logged: list[str] = []

    def keep(record: logging.LogRecord) -> bool:
        logged.append(record.getMessage())
        return False

    root = logging.getLogger()
    root.addFilter(keep)
    try:
        yield logged
    finally:
        root.removeFilter(keep)


def check_loaded(configuration: Any, user: Mapping[str, Any], logged: Sequence[str]) -> None:
    """Of what the package made of it. BadKubeconfig when its certificates can't be used, or a login gave nothing.

    logged: what the package logged.
    """
    if configuration.ssl_ca_cert:
        try:
            ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        except OSError as bad:  # ssl.SSLError is one
            raise BadKubeconfig("the certificate authority holds no certificate (PEM)") from bad
    if configuration.cert_file:
        try:
            ssl.create_default_context().load_cert_chain(configuration.cert_file, configuration.key_file)
        except OSError as bad:
            why = bad.reason if isinstance(bad, ssl.SSLError) and bad.reason else "no PEM"
            raise BadKubeconfig(f"client certificate and key can't be used together: {why}") from bad
    if "exec" in user and not (configuration.api_key or configuration.cert_file):
        raise BadKubeconfig(f"the user's exec command gave no credentials; run it by hand: {', '.join(logged)}")
