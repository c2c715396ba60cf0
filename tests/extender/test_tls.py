"""The ports with certificates, kube-scheduler's, people's and the enforcers': checked, and renewed while they serve."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from lab.standins.extender import ExtenderGone
from lab.standins.patience import PATIENCE_S, until
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc as rpc
from numakin.wire.certificates import expiry
from numakin.wire.verification import verifying
from tests.certificates import Authority, Mount, Pair, needed
from tests.extender.running import Extender, machine, recorded, welcome, whole_report
from tests.metrics import value

pytestmark = needed

NAMES = ("DNS:localhost", "IP:127.0.0.1")
PORTS = ("http", "web", "grpc")


@dataclass
class Secured:
    """An extender with TLS on its ports, kube-scheduler's and the enforcers' asking for a client's certificate; the
    files that it reads; a caller's own certificate.
    """

    extender: Extender
    mount: Mount
    authority: Authority
    caller: Mount

    def context(self, *, proving: bool = True) -> ssl.SSLContext:
        result = verifying(str(self.authority.ca))
        if proving:
            result.load_cert_chain(self.caller.cert, self.caller.key)
        return result

    def connection(self, *, proving: bool = True) -> http.client.HTTPSConnection:
        address, context = self.extender.http_address, self.context(proving=proving)
        return http.client.HTTPSConnection(address, timeout=PATIENCE_S, context=context)

    def people(self) -> http.client.HTTPSConnection:
        """They have no certificate."""
        address, context = self.extender.web_address, self.context(proving=False)
        return http.client.HTTPSConnection(address, timeout=PATIENCE_S, context=context)

    def shown(self, port: str) -> bytes:
        """The certificate, in DER, that a new caller sees."""
        context = self.context()
        context.set_alpn_protocols(["h2" if port == "grpc" else "http/1.1"])
        address = getattr(self.extender.program, port)
        host, _, number = address.rpartition(":")
        with (
            socket.create_connection((host, int(number)), PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            result = secure.getpeercert(binary_form=True)
            assert result is not None
            return result

    def metric(self, port: str, name: str = "numakin_extender_certificate_expiration_timestamp_seconds") -> float:
        connection = self.people()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return value(text, name, port=port)

    def complaints(self) -> list[str]:
        lines = map(json.loads, self.extender.log.read_text().splitlines())
        return [line["port"] for line in lines if line["event"] == "renewed certificate not taken"]


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    authority = Authority(tmp_path / "authority")
    mount = Mount(tmp_path / "mount", authority.issue(*NAMES), authority.ca)
    caller = Mount(tmp_path / "caller", authority.issue("DNS:caller"))
    options = [
        option
        for prefix in ("--tls", "--grpc-tls")
        for name, file in (("cert", mount.cert), ("key", mount.key), ("client-ca", mount.ca))
        for option in (f"{prefix}-{name}", str(file))
    ]
    extender = Extender(tmp_path, *options)
    yield Secured(extender, mount, authority, caller)
    extender.stop()


def ask(connection: http.client.HTTPSConnection) -> None:
    """As kube-scheduler does, on a connection that stays open."""
    connection.request("POST", "/filter", recorded("basic-nodecache-true.filter"))
    assert json.loads(connection.getresponse().read())["NodeNames"] == ["n1", "n2", "n3"]


def test_kube_scheduler_is_served_over_tls_with_its_certificate(secured):
    connection = secured.connection()
    for _ in range(3):
        ask(connection)
    connection.close()


def answered(connection: http.client.HTTPSConnection) -> int:
    connection.request("POST", "/filter", recorded("basic-nodecache-true.filter"))
    return connection.getresponse().status


def test_a_caller_without_a_certificate_or_with_another_cas_is_not_let_in(secured, tmp_path):
    refused = (ssl.SSLError, ConnectionError, http.client.BadStatusLine)
    with closing(secured.connection(proving=False)) as bare, pytest.raises(refused):
        answered(bare)
    secured.caller.put(Authority(tmp_path / "other").issue("DNS:caller"))
    with closing(secured.connection()) as foreign, pytest.raises(refused):
        answered(foreign)


def test_the_log_says_what_is_wrong_with_a_kube_scheduler_that_is_not_let_in(secured, tmp_path):
    """Its own log has no word of it."""
    address = secured.extender.http_address
    strange = verifying(str(Authority(tmp_path / "strange").ca))
    callers = [
        secured.connection(proving=False),
        http.client.HTTPSConnection(address, timeout=PATIENCE_S, context=strange),
        http.client.HTTPConnection(address, timeout=PATIENCE_S),
    ]
    for caller in callers:
        with closing(caller), pytest.raises((OSError, http.client.HTTPException)):
            answered(caller)

    def reasons() -> list[str]:
        lines = map(json.loads, secured.extender.log.read_text().splitlines())
        return [line["why"].partition(":")[0] for line in lines if line["event"] == "not let in"]

    told = [
        "the caller shows no certificate",
        "the caller does not trust our certificate",
        "the caller speaks HTTP without TLS",
    ]
    until(lambda: reasons() == told, "each is told of once")


def test_people_need_no_certificate_and_get_no_score(secured):
    people = secured.people()
    assert answered(people) == 404
    people.close()
    people.request("GET", "/api/v1/nodes")
    assert people.getresponse().status == 200
    people.close()


def channel(secured: Secured, *, proving: bool = True) -> grpc.Channel:
    ca, *own = [file.read_bytes() for file in (secured.authority.ca, secured.caller.key, secured.caller.cert)]
    return grpc.secure_channel(secured.extender.grpc_address, grpc.ssl_channel_credentials(ca, *own[: 2 * proving]))


HELLO = pb.FromEnforcer(hello=pb.Hello(node="n1", session="s"))


@pytest.mark.parametrize("proving", [True, False])
def test_enforcers_are_served_over_tls_with_their_certificate_alone(secured, proving):
    with channel(secured, proving=proving) as opened:
        answers = rpc.ReportsStub(opened).Stream(iter([HELLO]), timeout=PATIENCE_S)
        if proving:
            assert next(answers) == welcome(resume=False)
        else:
            with pytest.raises(grpc.RpcError) as caught:
                next(answers)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_renewed_certificate_is_shown_to_new_callers_and_breaks_no_connection(secured):
    first = {port: secured.shown(port) for port in PORTS}
    connection = secured.connection()
    ask(connection)
    socket_before = connection.sock
    enforcer = secured.extender.enforcer("n0", channel=channel(secured))
    enforcer.report(machine())
    pair = secured.authority.issue(*NAMES, days=7)
    secured.mount.put(pair)
    for port in PORTS:
        assert secured.shown(port) == pair.der != first[port]
        assert secured.metric(port) == expiry(pair.cert)
    ask(connection)
    assert connection.sock is socket_before
    enforcer.send(report=whole_report(2))
    assert enforcer.next() == pb.ToEnforcer(ack=pb.Ack(generation=2))
    connection.close()
    assert secured.complaints() == []


def test_no_call_fails_while_certificates_come_good_and_broken(secured):
    """One caller keeps its connection as kube-scheduler does, another dials for each call."""
    over, answered = threading.Event(), {"kept": 0, "fresh": 0}

    def kept() -> None:
        connection = secured.connection()
        while not over.is_set():
            ask(connection)
            answered["kept"] += 1
        connection.close()

    def fresh() -> None:
        while not over.is_set():
            connection = secured.connection()
            ask(connection)
            connection.close()
            answered["fresh"] += 1

    with ThreadPoolExecutor(2) as callers:
        calling = [callers.submit(entry) for entry in (kept, fresh)]
        try:
            for _ in range(5):
                before = dict(answered)
                good, other = secured.authority.issue(*NAMES), secured.authority.issue(*NAMES)
                secured.mount.put(Pair(good.cert, other.key))
                secured.mount.put(good)
                until(
                    lambda before=before: all(answered[entry] > before[entry] for entry in before), "both were answered"
                )
        finally:
            over.set()
        for entry in calling:
            entry.result(PATIENCE_S)


def test_a_renewed_ca_decides_who_may_call(secured, tmp_path):
    other = Authority(tmp_path / "other")
    secured.mount.put(ca=other.ca)
    with channel(secured) as opened, pytest.raises(grpc.RpcError):
        next(rpc.ReportsStub(opened).Stream(iter([HELLO]), timeout=PATIENCE_S))
    secured.caller.put(other.issue("DNS:caller"))
    with channel(secured) as opened:
        assert next(rpc.ReportsStub(opened).Stream(iter([HELLO]), timeout=PATIENCE_S)).HasField("welcome")
    connection = secured.connection()
    ask(connection)
    connection.close()


def test_a_broken_renewal_leaves_the_old_certificate_in_use_and_is_logged(secured):
    first = secured.shown("http")
    before = {port: secured.metric(port) for port in PORTS}
    good = secured.authority.issue(*NAMES, days=7)
    secured.mount.put(Pair(good.cert, secured.authority.issue(*NAMES).key))
    for port in PORTS:
        assert secured.shown(port) == first
        assert secured.metric(port) == before[port]
    until(lambda: sorted(secured.complaints()) == sorted(PORTS), "each port has said so")
    assert [secured.metric(port, "numakin_extender_certificates_not_taken_total") for port in PORTS] == [1, 1, 1]
    secured.mount.put(good)
    for port in PORTS:
        assert secured.shown(port) == good.der
    assert len(secured.complaints()) == len(PORTS)


def test_the_program_does_not_start_with_a_broken_certificate(tmp_path):
    authority = Authority(tmp_path / "authority")
    mount = Mount(tmp_path / "mount", Pair(authority.issue(*NAMES).cert, authority.issue(*NAMES).key))
    with pytest.raises(
        ExtenderGone, match=r"numakin-extender: .*tls\.key: .*the key does not belong to the certificate"
    ):
        Extender(tmp_path, "--tls-cert", str(mount.cert), "--tls-key", str(mount.key))
