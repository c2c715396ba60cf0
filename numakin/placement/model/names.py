"""Names by the API server's rules: what fails here reaches no path, label, log line or file name."""

from __future__ import annotations

import re

NAMESPACE_LENGTH = 63
"""Characters of a namespace's or a container's name (a DNS-1123 label)."""

OBJECT_LENGTH = 253
"""Characters of the name of a pod, a node or a workload (a DNS-1123 subdomain)."""

KIND_LENGTH = 63
"""Characters of a workload's kind: letters and digits."""

ID_LENGTH = 512
"""Characters of a uid, a container's id or a network endpoint: letters, digits and `._:/[]%@-`."""

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABELS = re.compile(_LABEL)
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_GROUP = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ID = re.compile(r"[A-Za-z0-9._:/\[\]%@-]+")


def is_label(text: str) -> bool:
    """Whether it may be a namespace's or a container's name."""
    return len(text) <= NAMESPACE_LENGTH and _LABELS.fullmatch(text) is not None


def is_object(text: str) -> bool:
    """Whether it may be the name of a pod, a node or a workload."""
    return len(text) <= OBJECT_LENGTH and _SUBDOMAIN.fullmatch(text) is not None


def is_kind(text: str) -> bool:
    return len(text) <= KIND_LENGTH and _KIND.fullmatch(text) is not None


def is_workload(text: str) -> bool:
    """NAMESPACE/KIND/NAME."""
    namespace, _, rest = text.partition("/")
    kind, _, name = rest.partition("/")
    return is_label(namespace) and is_kind(kind) and is_object(name)


def is_group(text: str) -> bool:
    """NAMESPACE/NAME, the name as `group.numakin.io` takes it."""
    namespace, _, name = text.partition("/")
    return is_label(namespace) and len(name) <= NAMESPACE_LENGTH and _GROUP.fullmatch(name) is not None


def is_label_key(text: str) -> bool:
    """PREFIX/NAME of a label or an annotation, or NAME alone."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_object(prefix)) and len(name) <= NAMESPACE_LENGTH and _GROUP.fullmatch(name) is not None


def is_id(text: str) -> bool:
    """A uid, a container's id, an address with a port."""
    return len(text) <= ID_LENGTH and _ID.fullmatch(text) is not None and ".." not in text
