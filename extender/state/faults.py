"""Nodes whose weighing raised: named and counted, so that a fault over one of them costs no other node its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from threading import Lock

from numakin.process.log import Log

_log = Log("cluster")


class Faults:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self._logged: dict[str, str] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """Since the start, by the node's name."""
        with self._lock:
            return dict(self._counts)

    def contained(self, node: str) -> Contained:
        """What is raised over this node ends there; whatever was to be found out keeps the value that it had before.

        The log has each node's fault once, until it has another one.
        """
        return Contained(self, node)

    def raised(self, node: str, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        with self._lock:
            self._counts[node] += 1
            logged, self._logged[node] = self._logged.get(node) == text, text
        if not logged:
            _log.exception("a node could not be weighed: it scores 0, and is refused to no pod", error, node=node)

    def forget(self, nodes: Iterable[str]) -> None:
        """Nodes that are no more in the cluster."""
        with self._lock:
            for node in nodes:
                self._counts.pop(node, None)
                self._logged.pop(node, None)


class Contained:
    """One of `Faults.contained`; thousands are entered for one answer, so it is no generator."""

    __slots__ = ("_faults", "_node")

    def __init__(self, faults: Faults, node: str) -> None:
        self._faults, self._node = faults, node

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._faults.raised(self._node, error)
        return True
