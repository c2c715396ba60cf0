"""The API server is found by a kubeconfig, by the pod's service account, or not at all."""

import datetime as dt
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes.config import incluster_config

from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.config import connect
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.tokens import ISSUER
from numakin.kubeconfig import BadKubeconfig
from tests.certificates import Authority, Mount, as_on_python_3_13, needed


def test_without_a_word_there_is_no_api_server():
    assert connect("", {}) is None


def test_who_has_no_api_server_does_not_load_its_client():
    program = "import sys, extender.main; print('kubernetes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_service_host_without_an_account_is_none_either():
    assert connect("", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) is None


def test_a_kubeconfigs_server_and_token_are_used(server, tmp_path):
    api = connect(str(server.kubeconfig(tmp_path / "config")), {})
    assert api.get("/api/v1/pods").json()["kind"] == "PodList"
    assert server.asked[-1].user.name == "admin"
    assert server.asked[-1].headers["user-agent"] == "numakin-extender"


def test_a_connection_on_which_nothing_comes_is_probed_and_dead_within_45_s(server, tmp_path):
    """A watch has nothing else to know by that its API server lost power."""
    api = connect(str(server.kubeconfig(tmp_path / "config")), {})
    with api.stream("/api/v1/pods", {"watch": "true"}, 5) as watch:
        connected = watch.connection.sock
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        kept = socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT
        quiet_s, probe_s, probes = (connected.getsockopt(socket.IPPROTO_TCP, option) for option in kept)
    assert quiet_s + probes * probe_s == 45


BAD = {
    "none": (None, "No such file"),
    "empty": ("", "."),
    "no context": ("apiVersion: v1\nkind: Config\n", "no current-context"),
    "not YAML": ("{", "."),
}


@pytest.mark.parametrize(("text", "received"), BAD.values(), ids=BAD)
def test_a_bad_kubeconfig_is_named(tmp_path, text, received):
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadKubeconfig, match=f"^kubeconfig {re.escape(str(path))}: .*({received})"):
        connect(str(path), {})


class Account:
    """What the kubelet mounts into a pod, and a pod's environment; the API server behind it, over HTTPS."""

    def __init__(self, folder: Path, server: ApiServer, ca: Path) -> None:
        self.folder, self.server = folder, server
        folder.mkdir()
        (folder / "ca.crt").write_bytes(ca.read_bytes())
        self.renew()
        host, _, port = server.url.removeprefix("https://").partition(":")
        self.environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

    def renew(self) -> str:
        """Another token, as the kubelet writes one when four fifths of the old one's time are over."""
        token = self.server.tokens.make("numakin", "numakin-extender", (ISSUER,))
        (self.folder / "token").write_text(token)
        return token

    def connect(self) -> Api:
        result = connect("", self.environment, self.folder)
        assert result is not None
        return result

    @property
    def shown(self) -> str:
        """The token of the last request."""
        return self.server.asked[-1].headers["authorization"].partition(" ")[2]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


NAMES = ("DNS:kubernetes.default.svc", "IP:127.0.0.1")


@pytest.fixture
def serving(tmp_path: Path, authority: Authority) -> ssl.SSLContext:
    mount = Mount(tmp_path / "apiserver", authority.issue(*NAMES))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(mount.cert, mount.key)
    return tls


@pytest.fixture
def secured(serving: ssl.SSLContext) -> Iterator[ApiServer]:
    with ApiServer(tls=serving) as running:
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
        running.grant("system:serviceaccount:numakin:numakin-extender", rules)
        yield running


@pytest.fixture
def account(tmp_path: Path, secured: ApiServer, authority: Authority) -> Account:
    return Account(tmp_path / "account", secured, authority.ca)


def a_minute_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the client, which reads its token once a minute."""

    class Later(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return dt.datetime.now(tz) + dt.timedelta(seconds=61)

    class Clock:
        datetime, timedelta = Later, dt.timedelta

    monkeypatch.setattr(incluster_config, "datetime", Clock)


@needed
class TestInAPod:
    def test_the_api_server_is_found_and_believed_and_the_account_is_known_there(self, account):
        assert account.connect().get("/api/v1/pods").json()["kind"] == "PodList"
        assert account.server.asked[-1].user.name == "system:serviceaccount:numakin:numakin-extender"

    def test_an_authority_without_extensions_is_believed_on_every_python(self, account, monkeypatch):
        as_on_python_3_13(monkeypatch)
        assert account.connect().get("/api/v1/pods").json()["kind"] == "PodList"

    def test_it_may_do_what_it_was_granted_and_nothing_else(self, account):
        with pytest.raises(ApiError, match="403 Forbidden"):
            account.connect().get("/api/v1/nodes")

    def test_an_api_server_of_another_authority_is_not_believed(self, account, tmp_path):
        (account.folder / "ca.crt").write_bytes(Authority(tmp_path / "other").ca.read_bytes())
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            account.connect().get("/api/v1/pods")
        assert not account.server.asked

    def test_a_renewed_authority_is_believed_from_the_next_connection_on(self, account, serving, tmp_path):
        """As where a cluster gets another CA, which the kubelet brings to pods that run."""
        api, other = account.connect(), Authority(tmp_path / "other")
        mount = Mount(tmp_path / "renewed", other.issue(*NAMES))
        serving.load_cert_chain(mount.cert, mount.key)
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            api.get("/api/v1/pods")
        (account.folder / "ca.crt").write_bytes(other.ca.read_bytes())
        assert api.get("/api/v1/pods").json()["kind"] == "PodList"

    def test_a_renewed_token_is_shown_from_the_next_minute_on(self, account, monkeypatch):
        api = account.connect()
        old = (account.folder / "token").read_text()
        new = account.renew()
        api.get("/api/v1/pods")
        assert account.shown == old
        a_minute_on(monkeypatch)
        api.get("/api/v1/pods")
        assert account.shown == new

    @pytest.mark.parametrize("content", ["", None], ids=["empty", "gone"])
    def test_while_the_token_can_not_be_read_the_last_one_is_shown(self, account, monkeypatch, content):
        api = account.connect()
        old = (account.folder / "token").read_text()
        (account.folder / "token").unlink()
        if content is not None:
            (account.folder / "token").write_text(content)
        a_minute_on(monkeypatch)
        api.get("/api/v1/pods")
        assert account.shown == old
        new = account.renew()
        api.get("/api/v1/pods")
        assert account.shown == new

    @pytest.mark.parametrize(
        ("file", "received"), [("token", "Token file exists but empty"), ("ca.crt", "Cert file exists but empty")]
    )
    def test_empty_files_are_named(self, account, file, received):
        (account.folder / file).write_text("")
        with pytest.raises(BadKubeconfig, match=f"^service account {re.escape(str(account.folder))}: {received}"):
            account.connect()


def test_the_system_s_authorities_are_not_read_for_a_server_over_plain_http(server, tmp_path, monkeypatch):
    """Each start would take a twentieth of a second longer."""
    read: list[ssl.SSLContext] = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda context, _purpose: read.append(context))
    assert connect(str(server.kubeconfig(tmp_path / "kubeconfig")), {}) is not None
    assert read == []
