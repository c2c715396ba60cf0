"""Nodes whose weighing raised: named and counted, so that a fault over one of them costs no other node its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

import structlog

_log = structlog.get_logger("cluster")


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

    @contextmanager
    def contained(self, node: str) -> Iterator[None]:
        """What is raised over this node ends here; whatever was to be found out keeps the value that it had before.

        The log has each node's fault once, until it has another one.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, the other nodes are to be answered for
            text = f"{type(error).__name__}: {error}"
            with self._lock:
                self._counts[node] += 1
                logged, self._logged[node] = self._logged.get(node) == text, text
            if not logged:
                _log.exception("a node could not be weighed: it scores 0, and is refused to nobody", node=node)

    def forget(self, nodes: Iterable[str]) -> None:
        """Nodes that are no more in the cluster."""
        with self._lock:
            for node in nodes:
                self._counts.pop(node, None)
                self._logged.pop(node, None)
