"""numakin's own CA over its years, and when somebody deletes or spoils what it keeps: enforcers and kube-scheduler go on
being served. The ports, the API server's and the dials are real; years pass by giving an authority earlier dates.
"""

from __future__ import annotations

import base64
import socket
import ssl
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from enforcer.report.stream import Endpoint
from extender.cluster import Cluster
from extender.kube.api import Api, ApiError
from extender.kube.config import connect
from extender.kube.tls.authorities import CA_LIFE, Authority, Pair, renewed
from extender.kube.tls.own_ca import BUNDLE, CA_SECRET, SCHEDULER_SECRET, OwnCa
from extender.reports.server import Server
from extender.reports.session import SessionCallbacks
from extender.scheduler.access import common_name
from proto import report_pb2 as pb
from proto import report_pb2_grpc as rpc
from proto.certificates import Files, Renewed
from standins.apiserver import ApiServer, faults
from standins.patience import PATIENCE_S
from tests.extender.running import Enforcer, machine, whole_report
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
        first = Authority.read(Pair(self.secret()["0.crt"], self.secret()["0.key"]))
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
        served = Renewed(Files(own.cert, own.key, own.ca, optional=True), self.complaints.append).current().context
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


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates are left in no folder that others look through."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ApiServer() as server:
        made = Site(tmp_path, server)
        yield made
        made.port.stop()


def test_enforcers_and_kube_scheduler_are_served_through_a_whole_rotation(site):
    """Who has taken over the bundle since the second authority was made notices nothing; nobody has to hurry."""
    with_first, scheduler = site.copied.read_bytes(), site.secret(SCHEDULER_SECRET)
    enforcer = site.enforcer()
    assert site.schedules(scheduler)

    site.years_pass(CA_LIFE * 0.7)
    assert len(site.authorities()) == 2
    assert site.streams(), "with the first authority alone: it still signs"
    assert site.schedules(scheduler)
    site.kubelet()
    assert site.copied.read_bytes() != with_first
    assert site.streams()
    copied_again = site.secret(SCHEDULER_SECRET)

    site.years_pass(CA_LIFE * 0.9)
    assert site.streams(), "with both: the second signs by now"
    assert site.schedules(copied_again), "its certificate is the first's, the port's is the second's"
    site.copied.write_bytes(with_first)
    assert not site.streams(), "who never took over the bundle is refused"

    site.years_pass(CA_LIFE * 1.1)
    assert len(site.authorities()) == 2, "the first has ended: it is kept, and good for nothing"
    assert not site.schedules(scheduler)
    site.kubelet()
    assert site.streams()
    assert site.schedules(site.secret(SCHEDULER_SECRET))
    enforcer.send(report=whole_report(2))
    assert enforcer.next() == pb.ToEnforcer(ack=pb.Ack(generation=2)), "the stream that was open all the time"
    enforcer.close()
    assert site.complaints == []


@pytest.mark.parametrize("off", [timedelta(days=7300), timedelta(days=-7300)], ids=["ahead", "behind"])
def test_a_replica_whose_clock_is_decades_wrong_cuts_nobody_off(site, off):
    """It has the Secrets to itself for a while; what was copied before, and every other replica, go on."""
    scheduler = site.secret(SCHEDULER_SECRET)
    site.replica(off).ensure()
    assert len(site.authorities()) == 2
    assert site.streams(), "an enforcer's connection to the other replica"
    site.own.ensure()
    site.kubelet()
    assert site.streams()
    assert site.schedules(scheduler)
    assert site.schedules(site.secret(SCHEDULER_SECRET))


@pytest.mark.parametrize("off", [timedelta(days=7300), timedelta(days=-7300)], ids=["ahead", "behind"])
def test_when_every_clock_was_decades_wrong_what_was_copied_before_is_served_again(site, off):
    scheduler, bundle = site.secret(SCHEDULER_SECRET), site.copied.read_bytes()
    site.off = off
    site.own.ensure()
    assert not site.streams(), "by the right clock of the enforcer here"
    site.off = timedelta(0)
    site.own.ensure()
    assert site.streams()
    assert site.schedules(scheduler)
    assert site.copied.read_bytes() == bundle


SPOILT = {
    "empty": lambda _data: {},
    "garbage": lambda data: {**data, "0.crt": b"garbage"},
    "a certificate cut in half": lambda data: {**data, "0.crt": data["0.crt"][:300]},
    "another's key": lambda data: {**data, "0.key": renewed((), datetime.now(UTC))[0].pair.key},
    "no key": lambda data: {"0.crt": data["0.crt"]},
    "other names": lambda data: {"tls.crt": data["0.crt"], "tls.key": data["0.key"]},
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_secret_is_written_again_as_the_running_replica_knows_it(site, spoil):
    good, scheduler = site.secret(), site.secret(SCHEDULER_SECRET)
    site.put(spoil(good))
    site.own.ensure()
    assert site.secret() == good
    assert site.streams()
    assert site.schedules(scheduler)


def test_one_of_two_authorities_that_is_spoilt_comes_back(site):
    site.years_pass(CA_LIFE * 0.7)
    good, scheduler = site.secret(), site.secret(SCHEDULER_SECRET)
    site.put({**good, "0.crt": b"garbage"})
    site.own.ensure()
    assert site.secret() == good
    assert site.schedules(scheduler)
    site.put({"1.crt": good["1.crt"], "1.key": good["1.key"]})
    site.own.ensure()
    assert len(site.authorities()) == 1, "an operator who takes the older one out means it"


@pytest.mark.parametrize(
    ("plural", "name"), [("secrets", CA_SECRET), ("secrets", SCHEDULER_SECRET), ("configmaps", BUNDLE)]
)
def test_what_is_deleted_is_there_again_at_the_next_check(site, plural, name):
    bundle, good = site.bundle(), site.secret()
    site.server.delete("v1", plural, name, NAMESPACE)
    site.own.ensure()
    assert (site.bundle(), site.secret()) == (bundle, good)
    assert site.schedules(site.secret(SCHEDULER_SECRET))
    assert site.streams()


def test_a_deleted_secret_that_no_replica_knows_any_more_is_a_new_authority_which_enforcers_follow(site):
    site.server.delete("v1", "secrets", CA_SECRET, NAMESPACE)
    fresh = site.replica()
    fresh.ensure()
    assert site.copied.read_bytes() != site.bundle()
    site.own.ensure()
    assert not site.streams(), "until the kubelet has brought the bundle"
    site.kubelet()
    assert site.streams()


def test_replicas_that_begin_together_have_one_authority(tmp_path):
    with ApiServer() as server:
        site = Site(tmp_path, server)
        server.delete("v1", "secrets", CA_SECRET, NAMESPACE)
        replicas = [site.replica() for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(OwnCa.ensure, replicas))
        (certificate,) = site.authorities()
        assert {Path(replica.files.ca).read_bytes() for replica in replicas} == {certificate}
        site.port.stop()


def test_what_the_api_server_does_not_take_keeps_nobody_from_being_served(site):
    """A rotation is due, and the Secrets can't be changed: they are immutable, or the right was taken away."""
    site.server.order(REFUSED, "update", "secrets", times=100)
    site.years_pass(CA_LIFE * 0.7)
    assert len(site.authorities()) == 1
    assert site.streams()
    site.replica().ensure()


def test_without_kube_scheduler_s_secret_enforcers_get_the_bundle_all_the_same(site):
    site.server.delete("v1", "secrets", SCHEDULER_SECRET, NAMESPACE)
    site.server.delete("v1", "configmaps", BUNDLE, NAMESPACE)
    site.server.order(REFUSED, "create", "secrets", times=100)
    site.own.ensure()
    site.kubelet()
    assert site.streams()


def test_without_an_answer_of_the_api_server_the_last_certificates_serve_on(site):
    site.server.order(faults.Answer(500), times=1000)
    with pytest.raises(ApiError):
        site.own.ensure()
    assert site.streams()
