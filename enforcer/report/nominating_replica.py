"""Which replica of the extender says where newcomers of this node go.

Every replica sees every binding. One that scored the pod holds the place that the scores went by. For a pod that was
bound without scores each names a place by a plan of its own, and a group whose pods took whichever came first would be
parted.
"""

from __future__ import annotations

import threading

from numakin.wire import report_pb2 as pb


class NominatingReplica:
    """The one that kube-scheduler asked last; until that is known, the first that named a place. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._address = ""

    def heed(self, address: str, expect: pb.Expect) -> None:
        """Takes out of the message where the pod is to go, where another replica says that; its facts stay."""
        with self._lock:
            if expect.numa_nodes and (expect.scored or not self._address):
                self._address = address
            elsewhere = self._address not in ("", address)
        if elsewhere:
            expect.ClearField("numa_nodes")
            expect.ClearField("planned")

    def lost(self, address: str) -> None:
        """There is no stream to the replica."""
        with self._lock:
            if self._address == address:
                self._address = ""
