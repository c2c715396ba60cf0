"""At which addresses the ports are: in a cluster of IPv6 alone nothing comes to another."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

import grpc
import pytest

from lab.standins.patience import PATIENCE_S
from numakin.process.ports import free_port
from tests.extender.running import Enforcer, running, welcome

pytestmark = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the kernel has no IPv6")


@pytest.mark.parametrize("every", ["0.0.0.0", "[::]"])
def test_every_address_is_that_of_ipv4_and_that_of_ipv6(tmp_path: Path, every: str):
    ports = {"web": free_port(), "health": free_port(), "grpc": free_port()}
    options = [f"--{name}-listen={every}:{port}" for name, port in ports.items()]
    with running(tmp_path, *options):
        for host in ("127.0.0.1", "[::1]"):
            assert _status(f"{host}:{ports['web']}", "/readyz") == 200
            assert _status(f"{host}:{ports['health']}", "/healthz") == 200
            address = f"{host}:{ports['grpc']}"
            enforcer = Enforcer(address, "n1", session=host, channel=grpc.insecure_channel(address))
            assert enforcer.next() == welcome(resume=False)
            enforcer.close()


def _status(address: str, path: str) -> int:
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()
