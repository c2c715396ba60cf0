"""A kubeconfig's chosen context with its cluster and user: files are merged and paths resolved as kubectl does. What
can't work is refused before it is used.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from numakin.process.files import read_regular

Entry = Mapping[str, Any]

KINDS = ("cluster", "user", "context")
PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields of a cluster or a user that name a file, relative to the kubeconfig's folder."""


class BadKubeconfig(ValueError):
    """The kubeconfig, or the service account's files, can't be used; worded for the person who named them."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One context of a kubeconfig. cluster, user: its entries, their paths absolute; the user may be empty. namespace:
    empty where the context names none.
    """

    cluster: Entry
    user: Entry
    namespace: str


def chosen(paths: Sequence[str], context: str = "") -> Chosen:
    """The named context of these files, the current one where none is named; the earlier file wins. BadKubeconfig when
    one is no kubeconfig, or what its context names is not there.
    """
    files = [(Path(path), _read(path)) for path in paths]
    if not any(content for _, content in files):
        raise BadKubeconfig("holds no kubeconfig: clusters, users, contexts and current-context are wanted")
    name = context or next((content["current-context"] for _, content in files if content.get("current-context")), "")
    if not name:
        raise BadKubeconfig("no current-context: choose one by `kubectl config use-context NAME`")
    rows = {kind: _rows(kind, files) for kind in KINDS}
    one = _named(rows, "context", name)
    cluster = _named(rows, "cluster", one.get("cluster"))
    _check_server(cluster.get("server"))
    _check_data(cluster, "certificate-authority-data")
    user = _named(rows, "user", one["user"]) if one.get("user") else {}
    _check_data(user, "client-certificate-data", "client-key-data")
    _check_command(user.get("exec"))
    return Chosen(cluster, user, str(one.get("namespace") or ""))


def _read(path: str) -> Entry:
    # Not every start of the extender reads one.
    import yaml  # noqa: PLC0415

    try:
        content = yaml.safe_load(read_regular(path))
    except OSError as bad:
        raise BadKubeconfig(bad.strerror or str(bad)) from bad
    except yaml.MarkedYAMLError as bad:
        line = f" in line {bad.problem_mark.line + 1}" if bad.problem_mark else ""
        raise BadKubeconfig(f"not YAML: {bad.problem}{line}") from bad
    except (yaml.YAMLError, UnicodeDecodeError) as bad:
        raise BadKubeconfig(f"not YAML: {str(bad).splitlines()[0]}") from bad
    if content is not None and content != "" and not isinstance(content, dict):
        raise BadKubeconfig("holds no kubeconfig: clusters, users, contexts and current-context are wanted")
    return content or {}


def _rows(kind: str, files: Sequence[tuple[Path, Entry]]) -> dict[str, Entry]:
    """Entries of one kind by name; of two with one name the first counts."""
    found: dict[str, Entry] = {}
    for path, content in files:
        listed = content.get(f"{kind}s")
        for row in listed if isinstance(listed, list) else ():
            if isinstance(row, dict) and isinstance(row.get(kind), dict):
                found.setdefault(str(row.get("name")), _resolved(row[kind], path.absolute().parent))
    return found


def _resolved(entry: Entry, folder: Path) -> Entry:
    """The entry with its relative paths made absolute; a command without a slash is looked for on the PATH."""
    named = {key: str(folder / entry[key]) for key in PATHS if entry.get(key) and isinstance(entry[key], str)}
    login = entry.get("exec")
    if isinstance(login, dict) and isinstance(login.get("command"), str) and os.sep in login["command"]:
        named["exec"] = {**login, "command": str(folder / login["command"])}  # type: ignore[assignment]
    return {**entry, **named}


def _named(rows: Mapping[str, Mapping[str, Entry]], kind: str, name: object) -> Entry:
    entry = rows[kind].get(str(name)) if name else None
    if entry is None:
        known = ", ".join(rows[kind]) or "none"
        raise BadKubeconfig(f"it has no {kind} {name!r}; its {kind}s: {known}")
    return entry


def _check_command(login: object) -> None:
    if login is None:
        return
    if not isinstance(login, dict) or not isinstance(login.get("command"), str) or not login["command"]:
        raise BadKubeconfig("the user's exec names no command")
    if shutil.which(login["command"]) is None:
        hint = str(login.get("installHint") or "install it where this program runs").strip()
        raise BadKubeconfig(f"the user's exec command {login['command']!r} is not there: {hint}")


def _check_data(entry: Entry, *keys: str) -> None:
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
