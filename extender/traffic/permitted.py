"""Who is expected to talk to whom because NetworkPolicies let them, one workload the other.

What may be is less than what is named: an expected pair of theirs weighs half of that of a Service that a container
names. A rule for all pods, for a whole namespace or for addresses shows nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from extender.traffic.limits import POLICIES_OF_NAMESPACE, WORKLOADS_SELECTED
from extender.traffic.policies import PolicyPeer, PolicyRow
from extender.traffic.selected import NO_WORKLOADS, SelectedWorkloads
from numakin.placement.namespaces import Namespaces

PERMITTED = 0.5
"""Of what is expected of a workload and a Service that it names."""

NAME_LABEL = "kubernetes.io/metadata.name"
"""Each Namespace object has it, with its name."""

Talks = tuple[str, str, float]
"""Client, server, and how strongly it is expected."""

Policies = Mapping[str, Mapping[str, PolicyRow]]
"""By namespace and name."""


def in_force(policies: Policies) -> Iterator[PolicyRow]:
    """Those that count: of each namespace the first by name."""
    for rows in policies.values():
        for name in sorted(rows)[:POLICIES_OF_NAMESPACE]:
            yield rows[name]


def left_out(policies: Policies) -> Iterator[PolicyRow]:
    """Those that do not."""
    for rows in policies.values():
        for name in sorted(rows)[POLICIES_OF_NAMESPACE:]:
            yield rows[name]


def permitted(policies: Policies, workloads: SelectedWorkloads, namespaces: Namespaces) -> Iterator[Talks]:
    """Servers of one rule's peer share what is expected of each client."""
    joined = _Joined(namespaces, workloads.namespaces)
    for row in in_force(policies):
        own = workloads.few(row.namespace, row.selector)
        if own:
            for peer in row.clients:
                yield from _talks(_selected(row, peer, workloads, joined), own)
            for peer in row.servers:
                yield from _talks(own, _selected(row, peer, workloads, joined))


class _Joined:
    """Namespaces whose pods may be kin of a namespace's, with their labels."""

    def __init__(self, namespaces: Namespaces, present: Collection[str]) -> None:
        self._tenancy, self._settings, self._present = namespaces.tenancy, namespaces.settings, sorted(present)
        self._known: dict[str, list[tuple[str, Mapping[str, str]]]] = {}

    def of(self, namespace: str) -> Iterable[tuple[str, Mapping[str, str]]]:
        """With itself."""
        if namespace not in self._known:
            together = (name for name in self._present if self._tenancy.together(namespace, name))
            self._known[namespace] = [(name, self._labels(name)) for name in together]
        return self._known[namespace]

    def _labels(self, name: str) -> Mapping[str, str]:
        settings = self._settings.get(name)
        return {NAME_LABEL: name, **(settings.labels if settings is not None else {})}


def _selected(row: PolicyRow, peer: PolicyPeer, workloads: SelectedWorkloads, joined: _Joined) -> frozenset[str]:
    if peer.namespaces is None:
        return workloads.few(row.namespace, peer.pods)
    selected = NO_WORKLOADS
    for name, labels in joined.of(row.namespace):
        if peer.namespaces.selects(labels):
            selected |= workloads.few(name, peer.pods)
            if len(selected) > WORKLOADS_SELECTED:
                workloads.wide.add((row.namespace, peer.pods))
                return NO_WORKLOADS
    return selected


def _talks(clients: Iterable[str], servers: Collection[str]) -> Iterator[Talks]:
    for client in clients:
        for server in servers:
            if client != server:
                yield client, server, PERMITTED / len(servers)
