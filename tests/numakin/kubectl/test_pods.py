"""Programs in pods, where the way to them breaks: each pod's failure is one line about that pod."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from lab.standins.apiserver.behind import EXEC_PROTOCOL, _frame, accepted
from lab.standins.patience import PATIENCE_S, until
from numakin.kubeconfig import Chosen
from numakin.kubectl.apiserver import ApiServer
from numakin.kubectl.errors import CommandError, Unanswered
from numakin.kubectl.pods import ENFORCER, OwnPod, Ran, each, own_pods, run_in

POD = OwnPod("enforcer-0", "node-1", True, "enforcer", (), {})
GOODBYE = _frame(0x8, b"\x03\xe8")

Way = Callable[[socket.socket], object]


def opened(*frames: bytes) -> Way:
    """A web socket with these frames, closed without more."""

    def answer(sock: socket.socket) -> None:
        key = re.search(rb"Sec-WebSocket-Key: (\S+)", received(sock))
        lines = (
            "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Protocol: {EXEC_PROTOCOL}", f"Sec-WebSocket-Accept: {accepted(key[1].decode())}",
        )  # fmt: skip
        sock.sendall("\r\n".join((*lines, "", "")).encode() + b"".join(frames))

    return answer


def received(sock: socket.socket) -> bytes:
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        text += sock.recv(4096)
    return text


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is given up because the machine is busy, unless a test says after how long."""
    monkeypatch.setattr("numakin.kubectl.pods.OPEN_S", PATIENCE_S)


@pytest.fixture
def answering() -> Iterator[Callable[[Way], ApiServer]]:
    """An API server of one connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(way: Way) -> ApiServer:
            def once() -> None:
                sock, _ = server.accept()
                with sock:
                    way(sock)

            threading.Thread(target=once, daemon=True).start()
            return ApiServer(Chosen({"server": f"http://127.0.0.1:{server.getsockname()[1]}"}, {}, ""))

        yield serve


def listing(*containers: str) -> Way:
    """An enforcer's pod with these containers, each with its own name as its argument."""
    spec = {"nodeName": "node-1", "containers": [{"name": name, "args": [f"--name={name}"]} for name in containers]}
    pod = {"metadata": {"name": "numakin-enforcer-0"}, "spec": spec, "status": {"phase": "Running"}}
    text = json.dumps({"items": [pod]}).encode()

    def answer(sock: socket.socket) -> None:
        received(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)

    return answer


@pytest.mark.parametrize("containers", [("enforcer",), ("istio-proxy", "enforcer"), ("enforcer", "istio-proxy")])
def test_numakins_own_container_is_found_beside_a_sidecar(answering, containers):
    (pod,) = own_pods(answering(listing(*containers)), "numakin", ENFORCER)
    assert (pod.container, pod.arguments) == ("enforcer", ("--name=enforcer",))


def test_a_program_that_ended_well_is_heard(answering):
    api = answering(opened(_frame(2, b"\1out"), _frame(2, b"\2err"), _frame(2, b'\3{"status":"Success"}'), GOODBYE))
    assert run_in(api, "numakin", POD, ["true"]) == Ran(0, "out", "err")


CUT = {
    "the connection is lost": (opened(_frame(2, b"\1out")), "was not heard to the end"),
    "the stream ends without a status": (opened(GOODBYE), "the stream ended without a status"),
    "a failure without a code": (
        opened(_frame(2, b'\3{"status":"Failure","message":"container is gone"}'), GOODBYE),
        "container is gone",
    ),
    "a cause that is text": (
        opened(
            _frame(2, b'\3{"status":"Failure","message":"oh","details":{"causes":[{"message":"no number"}]}}'), GOODBYE
        ),
        "true was not heard to the end: oh",
    ),
    "a status that is none": (opened(_frame(2, b"\3hello"), GOODBYE), "hello"),
    "half a frame": (opened(b"\x82\x7f\0"), "was not heard to the end"),
}


@pytest.mark.parametrize("case", CUT)
def test_a_program_that_is_cut_off_costs_one_line_of_its_pod(answering, case):
    way, why = CUT[case]
    with pytest.raises(Unanswered, match=f"^enforcer-0 on node-1: .*{why}"):
        run_in(answering(way), "numakin", POD, ["true"])


def test_who_takes_the_connection_and_never_answers_is_given_up(answering):
    done = threading.Event()
    try:
        with pytest.raises(Unanswered, match="no program can be started there: no answer within 1 s"):
            run_in(answering(lambda _: done.wait()), "numakin", POD, ["true"], timeout_s=1.0)
    finally:
        done.set()


def test_who_stops_in_the_middle_of_a_frame_is_given_up(answering):
    """The time is for the handshake too, which may take longer on a busy machine: then it is tried anew with more."""
    done, patience = threading.Event(), iter(2**number for number in range(9))

    def half(sock: socket.socket) -> None:
        opened(b"\x82\x7f\0")(sock)
        done.wait()

    def given_up() -> str:
        with pytest.raises(Unanswered) as why:
            run_in(answering(half), "numakin", POD, ["true"], timeout_s=next(patience))
        return "" if "no answer within" in str(why.value) else str(why.value)

    try:
        assert "true was not heard to the end" in until(given_up, "it begins")
    finally:
        done.set()


def test_no_interrupt_waits_for_whoever_is_asked():
    """Threads of a pool are waited for, at the interpreter's end too."""
    pods = [OwnPod(f"enforcer-{number}", "node-1", True, "enforcer", (), {}) for number in range(3)]
    asked, done = threading.Barrier(4), threading.Event()
    threads: list[threading.Thread] = []

    def ask(pod: OwnPod) -> str:
        threads.append(threading.current_thread())
        asked.wait()
        done.wait()
        if pod is pods[1]:
            raise CommandError("no")
        return pod.name

    answers = each(pods, ask, len(pods))
    begun = threading.Timer(0, lambda: (asked.wait(), done.set()))
    begun.start()
    first, *rest = answers
    assert first == (pods[0], "enforcer-0")
    assert [str(answer) for _, answer in rest] == ["no", "enforcer-2"]
    assert all(thread.daemon for thread in threads)


def test_no_more_are_asked_at_once_than_allowed():
    pods = [OwnPod(f"enforcer-{number}", "node-1", True, "enforcer", (), {}) for number in range(6)]
    lock, now, most = threading.Lock(), 0, 0

    def ask(_: OwnPod) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    assert [pod for pod, _ in each(pods, ask, 2)] == pods
    assert most <= 2


def test_a_program_is_started_by_the_cluster_s_proxy_whatever_no_proxy_says(monkeypatch):
    """As for any other question, and for kubectl."""
    monkeypatch.setenv("NO_PROXY", "api.example,127.0.0.1")
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def once() -> None:
            sock, _ = proxy.accept()
            with sock:
                asked.append(received(sock))
                sock.sendall(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")

        serving = threading.Thread(target=once, daemon=True)
        serving.start()
        cluster = {"server": "https://api.example:6443", "proxy-url": f"http://127.0.0.1:{proxy.getsockname()[1]}"}
        pod = OwnPod("numakin-enforcer-0", "node-1", True, "enforcer", (), {})
        with pytest.raises(Unanswered):
            run_in(ApiServer(Chosen(cluster, {}, "")), "numakin", pod, ["true"], 5.0)
        serving.join(5.0)
    assert asked
    assert asked[0].startswith(b"CONNECT api.example:6443 ")


ALL_AT_ONCE = """
import resource, socket, threading
from numakin.kubectl.pods import OwnPod, each

resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
all_there = threading.Barrier(100)

def ask(pod):
    with socket.socket():
        all_there.wait(60)

list(each([OwnPod(str(number), "", True, "enforcer", (), {}) for number in range(100)], ask, 100))
"""


def test_more_pods_are_asked_at_once_than_the_shell_gives_files():
    """As `record` does on a large cluster."""
    done = subprocess.run([sys.executable, "-c", ALL_AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
