"""The extender's view of the API server: follows pods and nodes, when there is an API server to follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import Protocol

import structlog

from extender.cluster.pods import NodeChanges, PodChanges
from extender.kube.config import connect
from extender.kube.stream import nodes, pods
from extender.kube.watch import Watcher

_log = structlog.get_logger("extender.kube")


class Follower(Protocol):
    """A watch, whatever it follows."""

    synced: Event

    @property
    def age_s(self) -> float: ...
    def start(self) -> None: ...
    def stop(self, timeout_s: float = ...) -> None: ...


class Following:
    """Both watches. `age_s` is how old the older of the two views is; None without an API server."""

    def __init__(
        self,
        kubeconfig: str,
        environment: Mapping[str, str],
        pods_changed: Callable[[PodChanges], None],
        nodes_changed: Callable[[NodeChanges], None],
    ) -> None:
        """BadKubeconfig when the file can't be read."""
        api = connect(kubeconfig, environment)
        self._watchers: tuple[Follower, ...] = ()
        if api is not None:
            self._watchers = (Watcher(api, pods(), pods_changed), Watcher(api, nodes(), nodes_changed))
        else:
            _log.warning("no API server is configured: pods are known from the enforcers' reports alone")

    @property
    def age_s(self) -> float | None:
        return max((one.age_s for one in self._watchers), default=None)

    @property
    def synced(self) -> bool:
        return all(one.synced.is_set() for one in self._watchers)

    def start(self) -> None:
        for one in self._watchers:
            one.start()

    def stop(self) -> None:
        for one in self._watchers:
            one.stop(timeout_s=2.0)
