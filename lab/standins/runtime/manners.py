"""How runtimes differ whatever NRI they carry, as seen on containerd 1.7.24 to 2.3.4 and on CRI-O 1.37.0."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.standins.runtime.versions import Version


@dataclass(frozen=True, slots=True)
class Manner:
    """One runtime's.

    cgroup_prefix: of a container's folder below its pod's.
    namespaces: those that a pod lists. lists_host_network: also the network's where it is the host's own.
    annotates_containers: whether a container shows its pod's annotations among its own.
    pid_from_creation: whether a container has one from PostCreateContainer on, else from StartContainer on.
    created_at_post_start: whether PostStartContainer still has it as CREATED.
    stopped_when_it_ends: whether a container that ends by itself is told with the state STOPPED, else RUNNING; newer
    containerds do so, too.
    tells_end_of_recovered: whether the end of sandboxes that it found at its own start is told (containerd#8426).
    undoes_creations: whether a creation that failed is taken back towards plugins.
    """

    cgroup_prefix: str = ""
    namespaces: tuple[str, ...] = ("pid", "ipc", "mount")
    lists_host_network: bool = False
    annotates_containers: bool = False
    pid_from_creation: bool = False
    created_at_post_start: bool = False
    stopped_when_it_ends: bool = False
    tells_end_of_recovered: bool = False
    undoes_creations: bool = True


CONTAINERD = Manner()

CRI_O = Manner(
    cgroup_prefix="crio-",
    namespaces=("ipc", "uts", "mount", "pid"),
    lists_host_network=True,
    annotates_containers=True,
    pid_from_creation=True,
    created_at_post_start=True,
    stopped_when_it_ends=True,
    tells_end_of_recovered=True,
    undoes_creations=False,
)

MANNERS = {"containerd": CONTAINERD, "cri-o": CRI_O}
"""By the name that a runtime gives itself."""


def manner_of(name: str, version: Version) -> Manner:
    """containerd's for a runtime that is not known."""
    manner = MANNERS.get(name, CONTAINERD)
    return replace(manner, stopped_when_it_ends=manner.stopped_when_it_ends or version.tells_stopped)
