"""The service proxy and `exec`, as `kubernetes` and any HTTP client use them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3
from kubernetes import client, config
from kubernetes.stream import stream

from lab.standins.apiserver import ApiServer

PROXY = "/api/v1/namespaces/numakin/services/{}/proxy/where/to?and=what"


class Echo(BaseHTTPRequestHandler):
    """Tells what it was sent."""

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        received = f"{self.command} {self.path} {body.decode()} authorized={'Authorization' in self.headers}".encode()
        self.send_response(418)
        self.send_header("Content-Length", str(len(received)))
        self.end_headers()
        self.wfile.write(received)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server, ThreadingHTTPServer(("127.0.0.1", 0), Echo) as backend:
        threading.Thread(target=backend.serve_forever, daemon=True).start()
        server.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        for name in ("there", "empty"):
            server.create("v1", "services", {"metadata": {"name": name}}, "numakin")
        server.behind.backends["services", "numakin", "there", "http"] = f"http://127.0.0.1:{backend.server_port}"
        yield server
        backend.shutdown()


def ask(api: ApiServer, name: str, method: str = "GET", token: str = "admin-token", **more: object) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"}
    with urllib3.PoolManager() as pool:
        answer = pool.request(method, api.url + PROXY.format(name), headers=headers, retries=False, **more)
        return answer.status, answer.data.decode()


def test_a_request_is_passed_on_with_its_path_and_body_but_without_who_asks(api):
    assert ask(api, "there:http", "POST", body=b"{}") == (418, "POST /where/to?and=what {} authorized=False")


def test_what_a_client_accepts_is_between_it_and_the_backend(api):
    with urllib3.PoolManager() as pool:
        headers = {"Authorization": "Bearer admin-token", "Accept": "text/html"}
        assert pool.request("GET", api.url + PROXY.format("there:http"), headers=headers).status == 418
        assert pool.request("GET", f"{api.url}/api/v1/namespaces/numakin", headers=headers).status == 406


@pytest.mark.parametrize(("name", "code", "why"), [
    ("nowhere:http", 404, "not found"),
    ("empty:http", 503, 'no endpoints available for service \\"empty\\"'),
    ("https:there:http", 500, "first record does not look like a TLS handshake"),
])  # fmt: skip
def test_where_nobody_answers_the_api_server_does(api, name, code, why):
    status, text = ask(api, name)
    assert status == code
    assert '"kind":"Status"' in text
    assert why in text


def test_it_takes_a_right_of_its_own(api):
    rules = [{"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"]}]
    token = api.grant("reader", rules, "numakin")
    assert ask(api, "there:http", token=token)[0] == 418
    assert ask(api, "there:http", "POST", token=token)[0] == 403
    assert ask(api, "there:http", token=api.grant("nobody", []))[0] == 403


def test_a_program_runs_in_a_pod_and_its_end_is_told(api, tmp_path: Path):
    api.create_pod("agent", "numakin")
    api.behind.programs["numakin", "agent"] = lambda words: subprocess.run(words, capture_output=True, check=False)
    configuration = client.Configuration()
    config.load_kube_config(str(api.kubeconfig(tmp_path / "config")), client_configuration=configuration)
    core = client.CoreV1Api(client.ApiClient(configuration))
    talk = [sys.executable, "-c", "import sys; print('x' * 70_000); print('no', file=sys.stderr); sys.exit(3)"]
    opened = stream(
        core.connect_get_namespaced_pod_exec, "agent", "numakin", command=talk, stdout=True, stderr=True,
        stdin=False, tty=False, _preload_content=False,
    )  # fmt: skip
    opened.run_forever(timeout=30)
    assert opened.read_stdout() == "x" * 70_000 + "\n"
    assert opened.read_stderr() == "no\n"
    assert opened.returncode == 3
    opened.sock.shutdown()
