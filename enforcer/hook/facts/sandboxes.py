"""Which pods are there, and by which sandboxes: so that the room of one that has gone is free again.

A pod may have two sandboxes: when its pause process dies, the kubelet makes a second one with the same pod uid, and
removes the first minutes later. And a sandbox may end without an event: containerd sends plugins none for those that it
recovered at its own start. Then the pod's cgroup is gone, or the API server says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from numakin.wire import nri_pb2 as nri

PodCgroup = Callable[[str, str], bool]
"""Whether the pod's own cgroup is there, by the path of a container in it and the pod's uid; False also where there
never is one.
"""


AT_ONCE = 16
"""Pods' cgroups that are looked for between two events: some 10 microseconds each."""


@dataclass(slots=True)
class _Pod:
    """sandboxes: encoded, by id. path: of a container's cgroup. seen: whether the pod's own cgroup was there.
    deleted: by the API server.
    """

    sandboxes: dict[str, bytes] = field(default_factory=dict)
    path: str = ""
    seen: bool = False
    deleted: bool = False


class Sandboxes:
    """By pod uid, those that the runtime reported and that have not ended."""

    def __init__(self, cgroup: PodCgroup) -> None:
        self._cgroup = cgroup
        self._pods: dict[str, _Pod] = {}
        self._turn = 0

    def listed(self, sandboxes: Collection[nri.PodSandbox]) -> None:
        """All that there are."""
        before, self._pods = self._pods, {}
        for sandbox in sandboxes:
            known = before.get(sandbox.uid, _Pod())
            pod = self._pods.setdefault(sandbox.uid, _Pod({}, known.path, known.seen, known.deleted))
            pod.sandboxes[sandbox.id] = _named(sandbox)

    def appeared(self, sandbox: nri.PodSandbox, cgroups_path: str = "") -> None:
        """cgroups_path: of a container in it."""
        pod = self._pods.setdefault(sandbox.uid, _Pod())
        if sandbox.id not in pod.sandboxes:
            pod.sandboxes[sandbox.id] = _named(sandbox)
        pod.path = cgroups_path or pod.path

    def ended(self, sandbox: nri.PodSandbox) -> bool:
        """Whether no other one of its pod is left."""
        pod = self._pods.get(sandbox.uid)
        if pod is None:
            return True
        pod.sandboxes.pop(sandbox.id, None)
        if not pod.sandboxes:
            del self._pods[sandbox.uid]
        return not pod.sandboxes

    def deleted(self, uid: str) -> None:
        """The API server has no such pod any more; its containers may still be ending."""
        if uid in self._pods:
            self._pods[uid].deleted = True

    def alive(self, uid: str) -> None:
        """The API server has it after all."""
        if uid in self._pods:
            self._pods[uid].deleted = False

    def note_cgroups(self) -> None:
        """Notes whose cgroup is there: only what was there can be missing."""
        self._note(self._unseen())

    def note_some_cgroups(self) -> None:
        """Notes of a few pods at a time, in turn, whether their cgroup is there."""
        unseen = self._unseen()
        self._turn = self._turn if self._turn < len(unseen) else 0
        self._note(unseen[self._turn : self._turn + AT_ONCE])
        self._turn += AT_ONCE

    def _unseen(self) -> list[tuple[str, _Pod]]:
        return [(uid, pod) for uid, pod in self._pods.items() if not pod.seen and pod.path]

    def _note(self, pods: Iterable[tuple[str, _Pod]]) -> None:
        for uid, pod in pods:
            pod.seen = self._cgroup(pod.path, uid)

    def gone(self, idle: Iterable[str]) -> list[nri.PodSandbox]:
        """A sandbox of each pod that is no more. idle: uids of those without a live container."""
        gone = []
        for uid in idle:
            pod = self._pods.get(uid)
            if pod is not None and (pod.deleted or (pod.seen and not self._cgroup(pod.path, uid))):
                gone.append(nri.PodSandbox.FromString(next(iter(pod.sandboxes.values()))))
                del self._pods[uid]
        return gone


def _named(sandbox: nri.PodSandbox) -> bytes:
    """Its names alone: a part of a request keeps all of the request in memory, with every container's environment.
    Encoded, since the least message takes a KiB.
    """
    names = nri.PodSandbox(id=sandbox.id, uid=sandbox.uid, name=sandbox.name, namespace=sandbox.namespace)
    return names.SerializeToString()
