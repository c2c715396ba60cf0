"""Extenders with numakin's own CA at one API server, with an enforcer's and kube-scheduler's end."""

from __future__ import annotations

import base64
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from enforcer.report.stream import Endpoint
from extender.cluster import Cluster
from extender.kube.api import Api
from extender.kube.config import connect
from extender.kube.tls.authorities import CA_LIFE, Authority, KeyPair
from extender.kube.tls.own_ca import BUNDLE, CA_SECRET, OwnCa
from extender.reports.server import Server
from extender.reports.session import SessionCallbacks
from extender.scheduler.access import common_name
from lab.standins.apiserver import ApiServer, faults
from lab.standins.patience import PATIENCE_S
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc as rpc
from numakin.wire.certificates import Files, Renewed
from tests.extender.running import Enforcer, machine
from tests.manifests.rendered import files, one
from tests.supervised import threads

NAMESPACE, SERVICE = "numakin", "numakin-extender"
REFUSED = faults.Answer(403)
HELLO = pb.FromEnforcer(hello=pb.Hello(node="n1", session="s"))


class Site:
    """An extender's certificates and its gRPC port. copied: the bundle as an enforcer has it mounted, which follows the
    ConfigMap only when `kubelet` is called. off: how far every replica's clock is ahead.
    """

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.server, self._folder = server, folder
        server.create("v1", "namespaces", {"metadata": {"name": NAMESPACE}})
        rules = one(files(), "Role", "numakin-extender")["rules"]
        api = connect(str(server.kubeconfig(folder / "kubeconfig", server.grant("extender", rules, NAMESPACE))), {})
        assert api is not None
        self.api: Api = api
        self.threads = threads()
        self.off = timedelta(0)
        self.own = self.replica()
        self.copied, self.complaints = folder / "ca.crt", list[str]()
        self.own.ensure()
        self.kubelet()
        tls = Renewed(Files(self.own.files.cert, self.own.files.key), self.complaints.append)
        self.port = Server(Cluster(), SessionCallbacks(), "127.0.0.1:0", tls, threads=self.threads)
        self.port.start()
        trusted = Renewed(Files(ca=str(self.copied)), self.complaints.append)
        self._endpoint = Endpoint(f"127.0.0.1:{self.port.port}", trusted, name=SERVICE)

    def replica(self, off: timedelta = timedelta(0)) -> OwnCa:
        """off: how far its clock is ahead of the others'."""

        def clock() -> datetime:
            return datetime.now(UTC) + self.off + off

        return OwnCa(self.api, NAMESPACE, (SERVICE,), threads=self.threads, clock=clock)

    def secret(self, name: str = CA_SECRET) -> dict[str, bytes]:
        data = self.server.get("v1", "secrets", name, NAMESPACE)["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}

    def put(self, data: dict[str, bytes], name: str = CA_SECRET) -> None:
        """In place of what the Secret has."""
        texts: dict[str, str | None] = dict.fromkeys(self.secret(name))
        texts |= {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.server.patch("v1", "secrets", name, {"data": texts}, namespace=NAMESPACE)

    def bundle(self) -> bytes:
        return str(self.server.get("v1", "configmaps", BUNDLE, NAMESPACE)["data"]["ca.crt"]).encode()

    def kubelet(self) -> None:
        """Brings the enforcer's mount up to date."""
        self.copied.write_bytes(self.bundle())

    def authorities(self) -> list[bytes]:
        """Their certificates, the oldest first."""
        secret = self.secret()
        return [secret[key] for key in sorted(secret) if key.endswith(".crt")]

    def years_pass(self, age: timedelta) -> None:
        """The first authority is as old by now; every replica has seen it so."""
        first = Authority.read(KeyPair(self.secret()["0.crt"], self.secret()["0.key"]))
        self.put({**self.secret(), "0.crt": aged(first, age).pair.cert})
        self.own.ensure()

    def enforcer(self) -> Enforcer:
        """One that has dialled now, and reported."""
        enforcer = Enforcer("", "n0", channel=self._endpoint.channel())
        enforcer.report(machine())
        return enforcer

    def streams(self) -> bool:
        """Whether an enforcer that dials now gets its welcome."""
        with self._endpoint.channel() as channel:
            try:
                return next(rpc.ReportsStub(channel).Stream(iter([HELLO]), timeout=PATIENCE_S)).HasField("welcome")
            except grpc.RpcError as refused:
                if refused.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                return False

    def schedules(self, copied: dict[str, bytes]) -> bool:
        """Whether kube-scheduler and the HTTP port take each other's certificates. copied: its files on the control
        plane, from the Secret of some day.
        """
        for name, content in copied.items():
            (self._folder / name).write_bytes(content)
        client = ssl.create_default_context(cadata=copied["ca.crt"].decode())
        client.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")
        own = self.own.files
        served = Renewed(Files(own.cert, own.key, own.ca), self.complaints.append).current().context
        return shaken(client, served) == "numakin:kube-scheduler"


def shaken(client: ssl.SSLContext, server: ssl.SSLContext) -> str:
    """The client's name after a handshake on real sockets; empty where one end refuses."""
    near, far = socket.socketpair()
    near.settimeout(PATIENCE_S)
    far.settimeout(PATIENCE_S)

    def serve() -> str:
        try:
            with server.wrap_socket(far, server_side=True) as accepted:
                accepted.recv(1)
                return common_name(accepted.getpeercert() or {})
        except (ssl.SSLError, OSError):
            return ""

    with ThreadPoolExecutor(1) as pool, near, far:
        accepted = pool.submit(serve)
        try:
            with client.wrap_socket(near, server_hostname=SERVICE) as opened:
                opened.send(b"x")
        except (ssl.SSLError, OSError):
            near.close()
        return accepted.result(PATIENCE_S)


def aged(authority: Authority, age: timedelta) -> Authority:
    """The same key and name with the dates of one that was made so long ago."""
    old, now = authority.certificate, datetime.now(UTC)
    builder = x509.CertificateBuilder(
        old.issuer, old.subject, old.public_key(), old.serial_number, now - age, now - age + CA_LIFE
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, critical=extension.critical)
    return Authority(builder.sign(authority.key, hashes.SHA256()), authority.key)
