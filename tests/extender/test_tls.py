"""Both ports with certificates: kube-scheduler's and the enforcers'."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from proto import report_pb2 as pb
from proto import report_pb2_grpc as rpc
from tests.extender.running import DEADLINE, Extender, recorded

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.crt, and tls.crt with tls.key for localhost, signed by it."""
    directory = tmp_path_factory.mktemp("certificates")
    ca = ("-keyout", f"{directory}/ca.key", "-out", f"{directory}/ca.crt", "-subj", "/CN=test CA")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", *ca)
    own = ("-keyout", f"{directory}/tls.key", "-out", f"{directory}/tls.csr", "-subj", "/CN=localhost")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *own)
    (directory / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    signing = ("-CA", f"{directory}/ca.crt", "-CAkey", f"{directory}/ca.key", "-extfile", f"{directory}/names")
    openssl("x509", "-req", "-in", f"{directory}/tls.csr", "-out", f"{directory}/tls.crt", "-days", "2", *signing)
    return directory


@pytest.fixture
def secured(certificates: Path, tmp_path: Path) -> Iterator[Extender]:
    """Both ports with TLS, both asking for a client's certificate."""
    files = {"cert": "tls.crt", "key": "tls.key", "client-ca": "ca.crt"}
    options = [
        option
        for prefix in ("--tls", "--grpc-tls")
        for name, file in files.items()
        for option in (f"{prefix}-{name}", str(certificates / file))
    ]
    extender = Extender(tmp_path, *options)
    yield extender
    extender.stop()


def context(certificates: Path, *, proving: bool = True) -> ssl.SSLContext:
    found = ssl.create_default_context(cafile=certificates / "ca.crt")
    if proving:
        found.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    return found


def test_kube_scheduler_is_served_over_tls_with_its_certificate(secured: Extender, certificates: Path):
    with_tls = http.client.HTTPSConnection(secured.http_address, timeout=DEADLINE, context=context(certificates))
    for _ in range(3):
        with_tls.request("POST", "/filter", recorded("basic-nodecache-true.filter"))
        response = with_tls.getresponse()
        assert json.loads(response.read())["NodeNames"] == ["n1", "n2", "n3"]
    with_tls.close()


def test_a_caller_without_a_certificate_is_turned_away(secured: Extender, certificates: Path):
    stranger = http.client.HTTPSConnection(
        secured.http_address, timeout=DEADLINE, context=context(certificates, proving=False)
    )

    def ask() -> None:
        # In TLS 1.3 the handshake is over before the server has seen that there is no certificate.
        stranger.request("GET", "/healthz")
        stranger.getresponse()

    with pytest.raises((ssl.SSLError, ConnectionError, http.client.BadStatusLine)):
        ask()
    stranger.close()


def credentials(certificates: Path, *, proving: bool) -> grpc.ChannelCredentials:
    read = [(certificates / file).read_bytes() for file in ("ca.crt", "tls.key", "tls.crt")]
    return grpc.ssl_channel_credentials(read[0], *(read[1:] if proving else ()))


@pytest.mark.parametrize("proving", [True, False])
def test_enforcers_are_served_over_tls_with_their_certificate_alone(secured: Extender, certificates: Path, proving):
    with grpc.secure_channel(secured.grpc_address, credentials(certificates, proving=proving)) as channel:
        hello = pb.FromEnforcer(hello=pb.Hello(node="n1", session="s"))
        answers = rpc.ReportsStub(channel).Stream(iter([hello]), timeout=DEADLINE)
        if proving:
            assert next(answers).welcome == pb.Welcome(resume=False)
        else:
            with pytest.raises(grpc.RpcError) as caught:
                next(answers)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
