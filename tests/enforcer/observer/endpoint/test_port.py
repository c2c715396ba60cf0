"""The metrics port fails alone: it is said by name and tried again, and nothing else waits for it."""

import http.client
import socket
from collections.abc import Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager

import grpc
import pytest

from enforcer.observer.endpoint.port import MOST_CONNECTIONS, Port, PortError
from enforcer.settings.config import Config
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.wire import report_pb2_grpc
from tests.enforcer.observer.endpoint.served import served
from tests.enforcer.report.listening import Extender
from tests.enforcer.running import GROUP, Enforcer

SILENT_S = 10.0
"""After so long one that says nothing is cut off in any case."""


@contextmanager
def taken(address: str) -> Iterator[None]:
    host, _, number = address.rpartition(":")
    with socket.create_server((host, int(number)), reuse_port=False):
        yield


def hello(environ, start):
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


def test_a_port_that_is_taken_is_named_and_served_once_it_is_free(enforcer: Enforcer) -> None:
    with (
        taken(enforcer.metrics),
        pytest.raises(PortError, match=f"{enforcer.metrics} can't be served: Address already"),
    ):
        Port(enforcer.metrics, hello).serve()
    with ExitStack() as stack:
        with taken(enforcer.metrics):
            failures = stack.enter_context(served(enforcer, hello))
            until(lambda: failures, "the first try")
        until(lambda: enforcer.get("/") == (200, "hello"), "the port is served")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the kernel has no IPv6")
@pytest.mark.parametrize(
    ("listen", "asked"), [("[::1]", ["::1"]), ("[::]", ["::1", "127.0.0.1"]), ("0.0.0.0", ["::1", "127.0.0.1"])]
)
def test_an_address_of_ipv6_is_served(enforcer: Enforcer, listen: str, asked: list[str]) -> None:
    """In a cluster of IPv6 alone the kubelet's probes come to no other."""
    number = int(enforcer.metrics.rpartition(":")[2])
    enforcer.metrics = f"{listen}:{number}"
    with served(enforcer, hello) as failures:
        for address in asked:
            until(lambda address=address: failures or _answer(address, number), "the port is served")
            assert _answer(address, number) == b"hello"


def _answer(address: str, port: int) -> bytes:
    connection = http.client.HTTPConnection(address, port, timeout=SILENT_S)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read()
    except ConnectionError:
        return b""
    finally:
        connection.close()


def test_the_oldest_connections_make_room_and_who_asks_is_answered(enforcer: Enforcer) -> None:
    """Any pod may reach the port, and say nothing."""
    host, _, number = enforcer.metrics.rpartition(":")
    with served(enforcer, hello), ExitStack() as stack:
        until(lambda: enforcer.get("/") == (200, "hello"), "the port is served")
        silent = [
            stack.enter_context(socket.create_connection((host, int(number)))) for _ in range(MOST_CONNECTIONS + 3)
        ]
        for connection in silent[:3]:
            connection.settimeout(SILENT_S / 2)
            assert connection.recv(1) == b""
        assert enforcer.get("/") == (200, "hello")
        silent[-1].sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert silent[-1].recv(64).startswith(b"HTTP/1.0 200 OK")


def test_a_taken_metrics_port_costs_neither_the_streams_nor_the_observer(enforcer: Enforcer, runtime: Runtime) -> None:
    extender = Extender()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    report_pb2_grpc.add_ReportsServicer_to_server(extender, server)
    at = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with taken(enforcer.metrics):
        process = enforcer.start("--extender", f"127.0.0.1:{at}")
        runtime.wait_for_plugin(PATIENCE_S)
        runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
        extender.wait_for(lambda kinds: "report" in kinds)
        before = enforcer.children()
        output = enforcer.said('thread="metrics port"')
        assert f"metrics port {enforcer.metrics} can't be served: Address already in use" in output
    until(lambda: enforcer.get("/readyz")[0] == 200, "the port is served once it is free")
    assert enforcer.children() == before
    server.stop(None)
    process.terminate()
    process.wait(PATIENCE_S)
    assert "Traceback" not in enforcer.log.read_text()


def test_the_default_port_is_nobody_elses_custom() -> None:
    """Prometheus exporters share 9100 to 9999, Kubernetes' own have 102xx; 30000 and above are node ports and ephemeral."""
    number = int(Config().metrics_listen.rpartition(":")[2])
    assert 10_300 <= number < 30_000
