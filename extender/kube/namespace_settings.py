"""What operators set on Namespace objects by annotation, read and gathered from what the API server reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from extender.kube import stream
from extender.kube.rows import Metadata
from extender.state.pods import Changes
from numakin.placement.namespaces import NOTHING, Namespaces, NamespaceTerms, read
from numakin.process.log import Log
from numakin.wire.bounds import NAMESPACES

_log = Log("namespaces")


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """One Namespace object. problems: what of its annotations is not taken, in words."""

    name: str
    uid: str = ""
    settings: NamespaceTerms = NOTHING
    problems: tuple[str, ...] = ()


class NamespaceSettings:
    """One owner. left_out: namespaces with settings beyond `bounds.NAMESPACES`, whose settings do not count."""

    def __init__(self) -> None:
        self.left_out = 0
        self._settings: dict[str, NamespaceTerms] = {}

    def after(self, changes: Changes[NamespaceRow]) -> Namespaces:
        """All that is set from now on."""
        named = {row.name for row in changes.rows} | {*changes.gone}
        before = {} if changes.whole else self._settings
        kept = {name: settings for name, settings in before.items() if name not in named}
        self._settings = kept | {row.name: row.settings for row in changes.rows if row.settings != NOTHING}
        left_out = max(0, len(self._settings) - NAMESPACES)
        if left_out > self.left_out:
            _log.error("too many namespaces have settings: the last by name count as without", most=NAMESPACES)
        self.left_out = left_out
        return Namespaces({name: self._settings[name] for name in sorted(self._settings)[:NAMESPACES]})


class _Namespace(msgspec.Struct):
    metadata: Metadata


def namespaces() -> stream.Resource[NamespaceRow]:
    """All of them, to list and watch."""
    return stream.resource("/api/v1/namespaces", _Namespace, _row, key=lambda row: row.name, gone_key=stream.name)


def _row(namespace: _Namespace) -> NamespaceRow:
    metadata = namespace.metadata
    terms, problems = read(metadata.annotations or {})
    if terms.affinity_with:
        terms = replace(terms, labels=metadata.labels or {})
    return NamespaceRow(metadata.name, metadata.uid, terms, problems)
