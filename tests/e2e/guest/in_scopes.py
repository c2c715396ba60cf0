"""Containers whose cgroups systemd has: what the kernel and the enforcer say of each, and where they are after an operator
has asked for something. Runs inside the emulated NUMA machine.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from enforcer.machine.cgroup import CgroupTree
from lab.standins.patience import until
from tests.e2e.guest.world import TOUCHED
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import Kubelet
from tests.e2e.lab.enforcer import RunningEnforcer

POD = "io.kubernetes.pod.name"
NAME = "io.kubernetes.container.name"

PATIENCE_S = 1200.0
"""For one step: other work on the machine outside slows it as much as emulation does."""

UNITS = (".scope", ".slice")

OPERATED = 3
"""Containers whose units are given a property, each by a call of systemctl, which takes emulation a second."""


@dataclass(frozen=True, slots=True)
class InScopes:
    """All that a runtime has. runtime: its socket."""

    runtime: Path

    def running(self) -> list[tuple[Any, int]]:
        """The labels and first processes of those that run."""
        return [(labels, pid) for labels, pid, _ in self._known() if pid]

    def has(self, name: str) -> bool:
        """Whether there is a container of that name."""
        with closing(Kubelet(self.runtime, "")) as asked:
            return any(container.labels[NAME] == name for container in asked.containers())

    def rows(self) -> list[dict[str, Any]]:
        """What is known of each; empty while one has not touched its memory."""
        known = self._known()
        touched = all(pid and kernel.anonymous_memory(pid).total() >= TOUCHED for _, pid, _ in known)
        return [_row(*container) for container in known] if touched else []

    def where(self) -> dict[str, str]:
        """By pod, the CPUs that the kernel lets it have."""
        return {labels[POD]: kernel.allowed(pid).cpus for labels, pid in self.running()}

    def all_pinned(self, pods: Sequence[str]) -> bool:
        where = self.where()
        return all(where.get(pod, kernel.online_cpus()) != kernel.online_cpus() for pod in pods)

    def released_and_resumed(
        self, mode: str, enforcer: RunningEnforcer, members: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        answer = enforcer.ask("release")
        yield {"after": f"{mode}: release", "where": self.where(), "answer": answer}
        enforcer.ask("resume")
        until(lambda: self.all_pinned(members), "all members to be pinned again", PATIENCE_S, pause_s=1.0)
        yield {"after": f"{mode}: resume", "where": self.where()}

    def looked_at_by_systemd(self, mode: str) -> Iterator[dict[str, Any]]:
        for command in self._of_an_operator():
            subprocess.run(["systemctl", *command], check=True)
        yield {"after": f"{mode}: systemctl", "where": self.where()}

    def _of_an_operator(self) -> Iterator[Sequence[str]]:
        """What makes systemd look at its units' cgroups again: all of them, and a container's own and its pod's."""
        yield ("daemon-reload",)
        for _, pid in self.running()[:OPERATED]:
            folder = kernel.cgroup(pid, "cpuset")
            units = [above.name for above in (folder, *folder.parents) if above.suffix in UNITS]
            for unit in units[:2]:
                yield ("set-property", "--runtime", unit, "CPUWeight=50")
        yield ("daemon-reexec",)

    def _known(self) -> list[tuple[Any, int, str]]:
        """Labels, first process, and path of the cgroup as the runtime has it."""
        with closing(Kubelet(self.runtime, "")) as asked:
            return [(container.labels, *asked.process(container.id)) for container in asked.containers()]


def _row(labels: Any, pid: int, path: str) -> dict[str, Any]:
    """path: of its cgroup, as the runtime has it. read: what the enforcer reads there."""
    tree = CgroupTree.discover()
    cpuset = tree.cpuset(path)
    return {
        "pod": labels[POD],
        "cgroup": asdict(kernel.cpuset(pid)),
        "allowed": asdict(kernel.allowed(pid)),
        "memory": kernel.anonymous_memory(pid),
        "path": path,
        "folder": str(kernel.cgroup(pid, "cpuset").relative_to(kernel.CGROUPS)),
        "read": {
            "cpus": str(cpuset.cpus) if cpuset else None,
            "mems": str(cpuset.mems) if cpuset else None,
            "memory": tree.memory_by_numa_node(path),
            "cpu_seconds": tree.cpu_seconds(path),
            "pod": tree.has_pod(path, labels["io.kubernetes.pod.uid"]),
        },
    }
