"""Real enforcers and the extender over TLS: whom each believes, and how renewed certificates are taken over.

The extender's certificate is for the name that enforcers are given; they dial the addresses behind it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.process.ports import free_port
from numakin.wire.certificates import expiry
from tests.certificates import Authority, Mount, needed
from tests.extender.running import Extender
from tests.metrics import value
from tests.trees import sysfs

pytestmark = needed

NODE = "n1"
NAME = "DNS:localhost"
"""As --extender has it; 127.0.0.1, which is dialled, is in no certificate here."""


class Site:
    """A node with its enforcer, an API server that knows the enforcer's pod, and an extender on a port that stays."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.folder, self.server = folder, server
        self.authority = Authority(folder / "authority")
        self.extenders = Mount(folder / "extenders", self.authority.issue(NAME), self.authority.ca)
        self.enforcers = Mount(folder / "enforcers", self.authority.issue("DNS:enforcer"), self.authority.ca)
        self.log, self.token = folder / "numakin.process.log", folder / "token"
        server.create_node(NODE)
        server.create_pod("enforcer-1", "numakin", serviceAccountName="enforcer", nodeName=NODE)
        self.token.write_text(server.token_for("numakin", "enforcer", "numakin", "enforcer-1"))
        self.runtime = Runtime(folder / "nri.sock")
        self.runtime.start()
        self._port, self._metrics = free_port(), free_port()
        self._runs = 0
        self.extender: Extender | None = None
        self.enforcer: subprocess.Popen[bytes] | None = None

    def start_extender(self, *, certificate: bool, token: bool) -> None:
        """What it demands of enforcers."""
        self._runs += 1
        folder = self.folder / f"extender-{self._runs}"
        folder.mkdir()
        options = ["--grpc-tls-cert", str(self.extenders.cert), "--grpc-tls-key", str(self.extenders.key)]
        if certificate:
            options += ["--grpc-tls-client-ca", str(self.extenders.ca)]
        if token:
            kubeconfig = self.server.kubeconfig(folder / "kubeconfig")
            options += ["--kube", "--kubeconfig", str(kubeconfig), "--enforcer-account", "numakin:enforcer"]
        self.extender = Extender(folder, "--grpc-listen", f"127.0.0.1:{self._port}", *options)

    def start_enforcer(self, *, certificate: bool, token: bool) -> None:
        """What it has to show."""
        command = [
            *(sys.executable, "-m", "enforcer", "run", "--node-name", NODE, "--observe", "off"),
            *("--nri-socket", str(self.folder / "nri.sock"), "--run-dir", str(self.folder / "run")),
            *("--sysfs", str(sysfs("xeon-8380")), "--metrics-listen", f"127.0.0.1:{self._metrics}"),
            *("--extender", f"localhost:{self._port}", "--extender-ca", str(self.enforcers.ca)),
        ]
        if certificate:
            command += ["--extender-cert", str(self.enforcers.cert), "--extender-key", str(self.enforcers.key)]
        if token:
            command += ["--extender-token", str(self.token)]
        with self.log.open("wb") as log:
            self.enforcer = subprocess.Popen(command, stderr=log)

    @property
    def heard(self) -> bool:
        """Whether the extender has the node's report, and its stream."""
        assert self.extender is not None
        return any(node["connected"] for node in self.extender.get("/api/v1/nodes")["nodes"])

    def said(self, *words: str) -> bool:
        """Whether one line of the enforcer's log has all of these."""
        return any(all(text in line for text in words) for line in self.log.read_text().splitlines())

    def expires(self) -> float:
        """By the enforcer's metrics."""
        return self.metric("numakin_enforcer_certificate_expiration_timestamp_seconds")

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=PATIENCE_S) as answer:
            return value(answer.read().decode(), name)

    def close(self) -> None:
        if self.enforcer is not None:
            self.enforcer.terminate()
            self.enforcer.wait(PATIENCE_S)
        if self.extender is not None:
            self.extender.stop()
        self.runtime.stop()


@pytest.fixture
def site() -> Iterator[Site]:
    # Not tmp_path, since a unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder, ApiServer() as server:
        made = Site(Path(folder), server)
        yield made
        made.close()


@pytest.mark.parametrize(("certificate", "token"), [(False, True), (True, False), (True, True)])
def test_a_replica_is_dialled_by_its_address_and_believed_by_its_name(site, certificate, token):
    site.start_extender(certificate=certificate, token=token)
    site.start_enforcer(certificate=certificate, token=token)
    until(lambda: site.heard, "the node is heard")


def test_an_extender_with_a_certificate_for_another_name_is_refused_and_the_log_says_which_was_wanted(site):
    site.extenders.put(site.authority.issue("DNS:somebody-else", "IP:127.0.0.1"))
    site.start_extender(certificate=False, token=False)
    site.start_enforcer(certificate=False, token=False)
    until(lambda: site.said("certificate_for=localhost", "Hostname Verification Check failed"), "it is said")
    assert not site.heard


def test_an_extender_of_another_authority_is_refused(site):
    other = Authority(site.folder / "other")
    site.extenders.put(other.issue(NAME))
    site.start_extender(certificate=False, token=False)
    site.start_enforcer(certificate=False, token=False)
    until(lambda: site.said("no stream to the extender", "CERTIFICATE_VERIFY_FAILED"), "it is said")
    assert not site.heard


def test_a_certificate_is_no_token_and_a_token_is_no_certificate(site):
    site.start_extender(certificate=True, token=True)
    site.start_enforcer(certificate=True, token=False)
    until(lambda: site.said("no stream to the extender", "UNAUTHENTICATED: not a token"), "it is said")
    site.enforcer.terminate()
    site.enforcer.wait(PATIENCE_S)
    site.start_enforcer(certificate=False, token=True)
    until(lambda: site.said("no stream to the extender", "UNAVAILABLE"), "it is said")
    assert not site.heard


def test_both_ends_go_over_to_another_authority_without_a_restart_of_the_enforcer(site):
    site.start_extender(certificate=True, token=True)
    site.start_enforcer(certificate=True, token=True)
    until(lambda: site.heard, "the node is heard")
    other = Authority(site.folder / "other")
    renewed = other.issue("DNS:enforcer", days=7)
    site.extenders.put(other.issue(NAME), other.ca)
    site.enforcers.put(renewed, other.ca)
    assert site.expires() == expiry(renewed.cert)
    assert site.heard
    site.extender.stop()
    site.start_extender(certificate=True, token=True)
    until(lambda: site.heard, "the node is heard")


def test_with_a_broken_renewal_the_enforcer_goes_on_with_what_it_had(site):
    site.start_extender(certificate=True, token=False)
    site.start_enforcer(certificate=True, token=False)
    until(lambda: site.heard, "the node is heard")
    before = site.expires()
    garbage = site.folder / "garbage"
    garbage.write_bytes(b"garbage")
    site.enforcers.put(ca=garbage)
    assert site.expires() == before
    site.extender.stop()
    site.start_extender(certificate=True, token=False)
    until(lambda: site.heard, "the node is heard")
    assert site.said("renewed certificates not taken")
    assert site.metric("numakin_enforcer_certificates_not_taken_total") == 1
