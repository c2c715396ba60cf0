"""Wrong uses of numakin-extender: each ends at once, with one line that says what to do."""

import base64
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.standins.patience import until
from tests.certificates import Authority, Mount, needed
from tests.extender.running import running
from tests.uses import Program

FREE = tuple(f"--{port}=127.0.0.1:0" for port in ("listen", "grpc-listen", "web-listen", "health-listen"))
JUNK = base64.b64encode(b"junk").decode()


def kubeconfig(current: str = "c", user: dict[str, Any] | None = None, **cluster: Any) -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
            "users": [{"name": "c", "user": {"token": "x"} if user is None else user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "current-context": current,
        }
    )


KUBECONFIGS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "holds no kubeconfig: clusters, users, contexts and current-context are wanted"),
    "not YAML": ("a: [", "not YAML: "),
    "not text": (bytes(range(128, 256)), "not YAML: "),
    "a list": ("- a", "holds no kubeconfig"),
    "a word": ("hello", "holds no kubeconfig"),
    "no context": ("kind: Config", "no current-context: choose one by `kubectl config use-context NAME`"),
    "contexts of another kind": ("current-context: c\ncontexts: 5", "it has no context 'c'; its contexts: none"),
    "another context": (kubeconfig("prod"), "it has no context 'prod'; its contexts: c"),
    "no server": (kubeconfig(server=None), "the cluster's server must be https://HOST:PORT, not None"),
    "a server of another kind": (kubeconfig(server=5), "the cluster's server must be https://HOST:PORT, not 5"),
    "a server without scheme": (kubeconfig(server="10.0.0.1:6443"), "must be https://HOST:PORT, not '10.0.0.1:6443'"),
    "a server by FTP": (kubeconfig(server="ftp://x"), "must be https://HOST:PORT, not 'ftp://x'"),
    "a port too high": (kubeconfig(server="https://x:99999"), "must be https://HOST:PORT, not 'https://x:99999'"),
    "a CA that is not base64": (
        kubeconfig(**{"certificate-authority-data": "%%%"}),
        "certificate-authority-data is not base64: write the PEM file's content by `base64 -w0`",
    ),
    "a CA of another kind": (
        kubeconfig(**{"certificate-authority-data": 5}),
        "certificate-authority-data is not base64",
    ),
    "a CA that is no certificate": (
        kubeconfig(**{"certificate-authority-data": JUNK}),
        "the certificate authority holds no certificate (PEM)",
    ),
    "a CA's file that is gone": (kubeconfig(**{"certificate-authority": "/nowhere/ca"}), "/nowhere/ca"),
    "a client certificate that is none": (
        kubeconfig(user={"client-certificate-data": JUNK, "client-key-data": JUNK}),
        "client certificate and key can't be used together: no PEM",
    ),
    "a client key that is not base64": (kubeconfig(user={"client-key-data": "?"}), "client-key-data is not base64"),
    "a login that is not installed": (
        kubeconfig(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nowhere/login"}}),
        "the user's exec command '/nowhere/login' is not there: install it where this program runs",
    ),
    "a login that gives nothing": (
        kubeconfig(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}}),
        "the user's exec command gave no credentials; run it by hand: exec: failed to decode",
    ),
}

OPTIONS: dict[str, tuple[str, str]] = {
    "an unknown option": ("--nope", "unrecognized arguments: --nope; see numakin-extender --help"),
    "a word too many": ("serve", "unrecognized arguments: serve; see numakin-extender --help"),
    "a log level": ("--log-level loud", "argument --log-level: invalid choice: 'loud'"),
    "no port": ("--listen 8080", "--listen must be HOST:PORT, not '8080'"),
    "a port too high": ("--grpc-listen 127.0.0.1:99999", "--grpc-listen must be HOST:PORT, not '127.0.0.1:99999'"),
    "a host unknown": (
        "--web-listen nosuch.invalid:0",
        "--web-listen nosuch.invalid:0: 'nosuch.invalid' is no address of this host",
    ),
    "another host's address": (
        "--web-listen 192.0.2.1:0",
        "--web-listen 192.0.2.1:0: Cannot assign requested address; choose another",
    ),
    "every address without TLS": (
        "--listen 0.0.0.0:0",
        "--listen 0.0.0.0:0: without TLS kube-scheduler's port is for this host alone, such as 127.0.0.1:8080",
    ),
    "one port for both": (
        "--listen 127.0.0.1:7 --grpc-listen 127.0.0.1:7",
        "--listen and --grpc-listen are both 127.0.0.1:7: each needs a port of its own",
    ),
    "kube-scheduler's port taken": (
        "--listen {taken}",
        "--listen {taken}: Address already in use; choose another, or end who has it",
    ),
    "people's port taken": ("--web-listen {taken}", "--web-listen {taken}: Address already in use; choose another"),
    "the gRPC port taken": ("--grpc-listen {taken}", "--grpc-listen {taken}: Address already in use; choose another"),
    "no number": ("--lease-duration many", "--lease-duration: 'many' is not a whole number"),
    "not a whole number": ("--lease-duration 1.5", "--lease-duration: '1.5' is not a whole number"),
    "a negative number": ("--lease-duration=-1", "--lease-duration must be within 1..3600, not -1"),
    "infinity": ("--hold inf", "--hold must be within 1..3600, not inf"),
    "not a number": ("--report-timeout nan", "--report-timeout must be within 1..3600, not nan"),
    "an infinite lease": ("--lease-duration inf", "--lease-duration: 'inf' is not a whole number"),
    "a namespace": ("--namespace A/..", "--namespace must be a namespace's name, not 'A/..'"),
    "an account": ("--enforcer-account enforcer", "--enforcer-account must be NAMESPACE:NAME, not 'enforcer'"),
    "an account, but nobody to ask": (
        "--enforcer-account a:b",
        "--enforcer-account needs an API server to check tokens with",
    ),
    "evictions, but nobody to ask": ("--regroup evict", "--regroup evict needs an API server to evict by"),
    "a certificate without a key": ("--tls-cert {folder}/junk", "--tls-cert and --tls-key belong together"),
    "a certificate that is gone": (
        "--tls-cert /nowhere/c --tls-key /nowhere/k",
        "TLS of the http port: /nowhere/c: No such file",
    ),
    "a certificate that is none": (
        "--grpc-tls-cert {folder}/junk --grpc-tls-key {folder}/junk",
        "TLS of the grpc port: {folder}/junk, {folder}/junk: no certificate and key in PEM form",
    ),
    "a certificate that is a FIFO": (
        "--tls-cert {folder}/fifo --tls-key {folder}/fifo",
        "{folder}/fifo: not a regular file",
    ),
    "a ready file in no folder": ("--ready-file /nowhere/x", "--ready-file must be a file in a folder that is there"),
    "a ready file that is a folder": ("--ready-file {folder}", "--ready-file must be a file in a folder that is there"),
    "options that are gone": ("--config /nowhere.toml", "config file /nowhere.toml: No such file or directory"),
    "options in a folder": ("--config {folder}", "config file {folder}: Is a directory"),
    "options in a FIFO": ("--config {folder}/fifo", "config file {folder}/fifo: not a regular file"),
    "options that are not text": ("--config {folder}/binary", "config file {folder}/binary: not text: "),
    "options of another program": (
        "--config {folder}/other.toml",
        "{folder}/other.toml: unknown key 'colour'",
    ),
    "a kubeconfig that is gone": ("--kubeconfig /nowhere/k", "kubeconfig /nowhere/k: No such file or directory"),
    "a kubeconfig that is a folder": ("--kubeconfig {folder}", "kubeconfig {folder}: Is a directory"),
    "a kubeconfig that is a FIFO": ("--kubeconfig {folder}/fifo", "kubeconfig {folder}/fifo: not a regular file"),
}


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with Program("extender.main") as first:
        yield first


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wrong")
    os.mkfifo(made / "fifo")
    (made / "junk").write_text("junk")
    (made / "binary").write_bytes(bytes(range(128, 256)))
    (made / "other.toml").write_text("colour = 'red'\n")
    return made


@pytest.fixture(scope="module")
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def refused(program: Program, *arguments: str) -> str:
    """The one line."""
    ended = program.use(*arguments)
    assert ended.status == 2, ended.output
    assert len(ended.lines) == 1, ended.output
    return ended.lines[0]


@pytest.mark.parametrize(("words", "received"), OPTIONS.values(), ids=OPTIONS)
def test_a_wrong_option_gets_one_line(program, folder, taken, words, received):
    places = {"folder": str(folder), "taken": taken}
    line = refused(program, *FREE, *(part.format(**places) for part in words.split()))
    assert line.startswith("numakin-extender: ")
    assert received.format(**places) in line


@pytest.mark.parametrize(("content", "received"), KUBECONFIGS.values(), ids=KUBECONFIGS)
def test_a_wrong_kubeconfig_gets_one_line(program, tmp_path, content, received):
    path = tmp_path / "kubeconfig"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = refused(program, *FREE, "--kubeconfig", str(path))
    assert line.startswith(f"numakin-extender: kubeconfig {path}: ")
    assert received in line


@needed
def test_a_key_of_another_certificate_is_named(program, tmp_path):
    authority = Authority(tmp_path / "authority")
    first, other = (Mount(tmp_path / name, authority.issue("IP:127.0.0.1")) for name in ("one", "other"))
    line = refused(program, *FREE, "--no-kube", "--tls-cert", str(first.cert), "--tls-key", str(other.key))
    assert line.endswith("the key does not belong to the certificate")


def test_without_any_cluster_it_runs_and_says_so(tmp_path):
    with running(tmp_path, "--kube") as extender:
        assert "no API server is configured: neither --kubeconfig nor a service account" in extender.log.read_text()
        assert (
            extender.get("/readyz")
            == "ok; degraded: without an API server, pods are known from enforcers' reports alone\n"
        )
        assert "numakin_extender_api_server_configured 0.0" in extender.get("/metrics")


def test_an_api_server_that_does_not_answer_is_waited_for(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig())
    with running(tmp_path, "--kube", "--kubeconfig", str(path)) as extender:
        assert "numakin_extender_api_server_configured 1.0" in extender.get("/metrics")
        assert extender.ask("GET", "/readyz")[0] == 503
        until(lambda: "Connection refused" in extender.log.read_text(), "it has tried")
    assert "Traceback" not in extender.log.read_text()
