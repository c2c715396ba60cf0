"""What a kubeconfig may say of its user, its server and the way there: as kubectl has it, against a real HTTPS server."""

from __future__ import annotations

import base64
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from numakin.kubeconfig import chosen
from numakin.kubectl.apiserver import ApiServer, connect
from numakin.kubectl.credentials import Credentials
from numakin.kubectl.errors import Unanswered, UsageError
from tests.certificates import Authority, Mount, needed

pytestmark = needed

NOW = time.time()
V1 = "client.authentication.k8s.io/v1"


class Server(ThreadingHTTPServer):
    """Answers each GET by what it was asked with: headers, and the caller's certificate."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Refused handshakes are what is tested."""


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        peer = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        subject = dict(pair[0] for pair in peer["subject"])["commonName"] if peer else ""
        headers = [[name, value] for name, value in self.headers.items()]
        body = json.dumps({"headers": headers, "subject": subject, "asked": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki") / "authority")


@pytest.fixture(scope="module")
def secured(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that asks for a certificate, and takes callers without."""
    pair = authority.issue("DNS:kubernetes.default.svc", "IP:127.0.0.1")
    mount = Mount(tmp_path_factory.mktemp("server") / "tls", pair)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(mount.cert, mount.key)
    server = Server()
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    yield server
    server.shutdown()
    server.server_close()


Config = Callable[..., Path]


@pytest.fixture
def config(tmp_path: Path, secured: Server, authority: Authority) -> Config:
    """Writes a kubeconfig of this server; user, cluster: more fields of its entries."""

    def written(
        user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, name: str = "config"
    ) -> Path:
        trusted = {"server": f"https://127.0.0.1:{secured.port}", "certificate-authority": str(authority.ca)}
        path = tmp_path / name
        content = {
            "clusters": [{"name": "c", "cluster": trusted | (cluster or {})}],
            "users": [{"name": "u", "user": user or {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
            "current-context": "x",
        }
        path.write_text(yaml.safe_dump(content))
        return path

    return written


def told(api: ApiServer) -> dict[str, Any]:
    answer: dict[str, Any] = api.object("/version")
    return answer


def headers(api: ApiServer, name: str) -> list[str]:
    return [value for key, value in told(api)["headers"] if key == name]


def encoded(text: bytes | str) -> str:
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def test_the_context_has_the_namespace(config: Config) -> None:
    assert connect(str(config()), "").namespace == "shop"


USERS = {
    "a token": ({"token": "t"}, [("Authorization", "Bearer t")]),
    "a name and a password": ({"username": "u", "password": "p"}, [("Authorization", "Basic dTpw")]),
    "nobody": ({}, []),
    "another user": (
        {"token": "t", "as": "eve", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"why": ["x"]}},
        [
            ("Authorization", "Bearer t"), ("Impersonate-User", "eve"), ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "a"), ("Impersonate-Group", "b"), ("Impersonate-Extra-why", "x"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", USERS)
def test_each_request_says_who_asks(config: Config, case: str) -> None:
    user, wanted = USERS[case]
    said = told(connect(str(config(user)), ""))["headers"]
    assert sorted((name, value) for name, value in said if name.startswith(("Authorization", "Imp"))) == sorted(wanted)


def test_a_token_s_file_is_read_for_each_request_and_is_beside_the_kubeconfig(config: Config, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    api = connect(str(config({"tokenFile": "token"})), "")
    assert headers(api, "Authorization") == ["Bearer first"]
    (tmp_path / "token").write_text("second\n")
    assert headers(api, "Authorization") == ["Bearer second"]


@pytest.mark.parametrize("how", ["files", "data"])
def test_a_certificate_is_shown(config: Config, authority: Authority, tmp_path: Path, how: str) -> None:
    pair = authority.issue("DNS:person")
    (tmp_path / "person.crt").write_bytes(pair.cert)
    (tmp_path / "person.key").write_bytes(pair.key)
    files = {"client-certificate": "person.crt", "client-key": "person.key"}
    data = {"client-certificate-data": encoded(pair.cert), "client-key-data": encoded(pair.key)}
    assert told(connect(str(config(files if how == "files" else data)), ""))["subject"] == "person"


def test_a_server_of_another_authority_is_not_believed_unless_that_is_said(config: Config, tmp_path: Path) -> None:
    other = {"certificate-authority-data": encoded(Authority(tmp_path / "other").ca.read_bytes())}
    with pytest.raises(Unanswered, match="CERTIFICATE_VERIFY_FAILED"):
        told(connect(str(config(cluster=other)), ""))
    assert told(connect(str(config(cluster=other | {"insecure-skip-tls-verify": True})), ""))


def test_an_authority_s_comments_may_be_in_any_script(config: Config, authority: Authority) -> None:
    """As in the bundles of distributions."""
    pem = "# F\u0151tan\u00fas\u00edtv\u00e1ny\n".encode() + authority.ca.read_bytes()
    assert told(connect(str(config(cluster={"certificate-authority-data": encoded(pem)})), ""))


def test_the_server_s_name_may_be_another(config: Config) -> None:
    assert told(connect(str(config(cluster={"tls-server-name": "kubernetes.default.svc"})), ""))
    with pytest.raises(Unanswered, match=r"doesn't match|not valid for"):
        told(connect(str(config(cluster={"tls-server-name": "elsewhere"})), ""))


class Login:
    """A command that logs in: prints an ExecCredential, and notes what it was told."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.notes = folder, folder / "login", folder / "notes"
        self.gives({"token": "one"})
        self.path.write_text(
            f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO $TEAM $*" >>{self.notes}\ncat {folder}/credential\n'
        )
        self.path.chmod(0o755)

    def gives(self, status: dict[str, Any], version: str = V1) -> None:
        content = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        (self.folder / "credential").write_text(json.dumps(content))

    def user(self, **more: Any) -> dict[str, Any]:
        row = {"apiVersion": V1, "command": "./login", "args": ["-v"], "env": [{"name": "TEAM", "value": "shop"}]}
        return {"exec": row | more}

    @property
    def told(self) -> list[str]:
        return self.notes.read_text().splitlines()


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(tmp_path)


def test_a_command_logs_in_once_and_is_told_of_its_cluster(config: Config, login: Login, secured: Server) -> None:
    api = connect(str(config(login.user(provideClusterInfo=True))), "")
    assert [headers(api, "Authorization") for _ in range(2)] == [["Bearer one"]] * 2
    (line,) = login.told
    asked, _, rest = line.rpartition("}")
    spec = json.loads(asked + "}")["spec"]
    assert rest == " shop -v"
    assert (spec["interactive"], spec["cluster"]["server"]) == (False, f"https://127.0.0.1:{secured.port}")


def test_a_login_that_ends_is_renewed(config: Config, login: Login) -> None:
    now = [NOW]
    login.gives({"token": "one", "expirationTimestamp": "2033-05-18T03:33:20Z"})
    credentials = Credentials(chosen([str(config(login.user()))]), lambda: now[0])
    assert credentials.headers() == [("Authorization", "Bearer one")]
    login.gives({"token": "two"})
    assert credentials.headers() == [("Authorization", "Bearer one")]
    now[0] = 2_000_000_000 - 1.0
    assert credentials.headers() == [("Authorization", "Bearer two")]


def test_a_login_may_give_a_certificate(config: Config, login: Login, authority: Authority) -> None:
    pair = authority.issue("DNS:by-login")
    login.gives({"clientCertificateData": pair.cert.decode(), "clientKeyData": pair.key.decode()})
    assert told(connect(str(config(login.user())), ""))["subject"] == "by-login"


def jwt(ends: float) -> str:
    return f"e30.{encoded(json.dumps({'exp': ends})).rstrip('=')}.s"


def test_kubectl_s_oidc_token_is_shown_while_it_lasts(config: Config) -> None:
    provider = {"auth-provider": {"name": "oidc", "config": {"id-token": jwt(NOW + 3600)}}}
    assert headers(connect(str(config(provider)), ""), "Authorization") == [f"Bearer {jwt(NOW + 3600)}"]


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an OIDC token that has ended": (
        {"auth-provider": {"name": "oidc", "config": {"id-token": jwt(NOW - 60)}}}, {}, "any command of kubectl's renews it",
    ),
    "a provider that kubectl dropped": ({"auth-provider": {"name": "gcp"}}, {}, "'gcp' is none that kubectl has: use exec"),
    "a login of another version": (
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "true"}}, {}, "allowed: client.auth",
    ),
    "a login that fails": ({"exec": {"apiVersion": V1, "command": "false"}}, {}, "run it by hand: false: it failed with status 1"),
    "a login that gives nothing": ({"exec": {"apiVersion": V1, "command": "true"}}, {}, "is no ExecCredential"),
    "a login that wants a terminal": (
        {"exec": {"apiVersion": V1, "command": "true", "interactiveMode": "Always"}}, {}, "needs a terminal",
    ),
    "a login without a command": ({"exec": {"apiVersion": V1}}, {}, "names no command"),
    "a token's file that is not there": ({"tokenFile": "/no"}, {}, "tokenFile /no: No such file"),
    "a certificate that is none": ({"client-certificate-data": encoded("x"), "client-key-data": encoded("y")}, {}, "no PEM|NO_START_LINE"),
    "an authority that is none": ({}, {"certificate-authority-data": encoded("x")}, "holds no certificate"),
    "an authority that is not there": ({}, {"certificate-authority": "/no"}, "certificate-authority /no: No such file"),
    "a proxy of another kind": ({}, {"proxy-url": "socks5://h:1"}, "only proxies of http"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_can_not_work_is_said_in_one_line(config: Config, case: str) -> None:
    user, cluster, why = BAD[case]
    path = config(user, cluster)
    with pytest.raises(UsageError, match=why) as said:
        connect(str(path), "")
    assert str(said.value).startswith(f"kubeconfig {path}: ")


def test_of_several_files_the_first_that_names_a_thing_counts(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "first"
    first.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"token": "first"}}], "current-context": "x"}))
    second = config({"token": "second"})
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (first, tmp_path / "absent", second))))
    assert headers(connect("", ""), "Authorization") == ["Bearer first"]


def test_the_way_leads_through_the_cluster_s_proxy(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Server()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    plain = {"server": "http://api.invalid:80", "proxy-url": f"http://127.0.0.1:{proxy.port}"}
    try:
        assert told(connect(str(config(cluster=plain)), ""))["asked"] == "http://api.invalid:80/version"
    finally:
        proxy.shutdown()
        proxy.server_close()


@pytest.mark.parametrize(
    "cluster",
    [{"server": "http://127.0.0.1:8001"}, {"insecure-skip-tls-verify": True}],
    ids=["over plain HTTP", "not verified"],
)
def test_where_no_authority_counts_the_system_s_are_not_read(config: Config, cluster: dict[str, Any]) -> None:
    """Each command would begin a twentieth of a second later."""
    asked = chosen([str(config(cluster=cluster | {"certificate-authority": ""}))])
    assert Credentials(asked).tls.cert_store_stats()["x509"] == 0
