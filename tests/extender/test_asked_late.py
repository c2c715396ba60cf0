"""Tests that share an extender may come to it minutes after one another: by then it has closed their connections as idle."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from lab.standins.patience import until
from tests import forked
from tests.extender.running import Extender, running
from tests.numakin.kubectl.conftest import scored


def closed(extender: Extender, port: str) -> bool:
    """Whether it has closed the connection to that port."""
    connection = {"people": extender.people, "kube-scheduler": extender.connection}[port]
    assert connection.sock is not None
    connection.sock.setblocking(False)
    try:
        return connection.sock.recv(1) == b""
    except BlockingIOError:
        return False
    finally:
        connection.sock.settimeout(connection.timeout)


@pytest.mark.parametrize("port", ["people", "kube-scheduler"])
def test_who_asks_again_is_answered(tmp_path: Path, port: str) -> None:
    soon = {"extender.serving.limits.KEEPALIVE_S": 0.1}
    with running(tmp_path, begin=partial(forked.extender, constants=soon)) as extender:
        for _ in range(2):
            if port == "people":
                assert extender.get("/api/v1/nodes")["nodes"] == []
            else:
                extender.post("prioritize", scored("cart-9"))
            until(lambda: closed(extender, port), "the connection to be closed as idle")
