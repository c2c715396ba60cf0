"""numakin's own pods, and programs that run inside of them as `kubectl exec` would start them."""

from __future__ import annotations

import json
import resource
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from websocket import ABNF, WebSocket, WebSocketException, WebSocketTimeoutException

from numakin.kubectl.apiserver import LARGEST_ANSWER, ApiServer
from numakin.kubectl.errors import CommandError, Unanswered
from numakin.kubectl.output import some

ENFORCER, EXTENDER = "numakin-enforcer", "numakin-extender"
"""Values of the label app.kubernetes.io/name, and names of the containers' programs."""

AT_ONCE = 16
"""Pods that are asked at the same time."""

OPEN_S = 30.0
"""For the API server and the kubelet to start a program."""

EXEC_S = 60.0

_PROTOCOL = "v4.channel.k8s.io"
_STDOUT, _STDERR, _STATUS = 1, 2, 3
"""The web socket's channels; by the last comes how the program ended."""

_SOON_S = 0.001
"""A web socket without a timeout waits for ever."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnPod:
    """One of numakin's pods. arguments: of its program, with the node's name filled in. ready: False where the kubelet
    says that it is not.
    """

    name: str
    node: str
    running: bool
    container: str
    arguments: tuple[str, ...]
    ports: dict[str, int]
    ready: bool = True

    def option(self, name: str, default: str) -> str:
        """Of --NAME=VALUE among its arguments."""
        start = f"--{name}="
        return next(
            (argument.removeprefix(start) for argument in self.arguments if argument.startswith(start)), default
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program in a pod printed. code: its exit code."""

    code: int
    out: str
    err: str


def own_pods(api: ApiServer, namespace: str, name: str) -> list[OwnPod]:
    """By node. Unanswered when they may not be listed."""
    query = {"labelSelector": f"app.kubernetes.io/name={name}"}
    items = api.listed(f"/api/v1/namespaces/{namespace}/pods", query)
    own = name.removeprefix("numakin-")
    return sorted((_own(item, own) for item in items), key=lambda pod: (pod.node, pod.name))


def _own(item: dict[str, Any], name: str) -> OwnPod:
    """name: of numakin's own container; a service mesh puts another one before it."""
    spec, containers = item["spec"], item["spec"]["containers"]
    container = next((each for each in containers if each["name"] == name), containers[0])
    node = spec.get("nodeName") or ""
    arguments = (argument.replace("$(NODE_NAME)", node) for argument in container.get("args") or ())
    ports = {port.get("name", ""): port["containerPort"] for port in container.get("ports") or ()}
    status = item.get("status") or {}
    running = status.get("phase") == "Running" and not item["metadata"].get("deletionTimestamp")
    said = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    ready = said.get("Ready") != "False"
    return OwnPod(item["metadata"]["name"], node, running, container["name"], tuple(arguments), ports, ready)


def of_nodes(pods: Sequence[OwnPod], nodes: Iterable[str]) -> list[OwnPod]:
    """Those of these nodes; of all when none is named. CommandError for a node that has none."""
    wanted, known = list(nodes), {pod.node for pod in pods}
    for node in wanted:
        if node not in known:
            raise CommandError(f"no enforcer's pod is on node {node}; they are on: {some(sorted(known))}")
    return [pod for pod in pods if not wanted or pod.node in wanted]


def run_in(api: ApiServer, namespace: str, pod: OwnPod, command: Sequence[str], timeout_s: float = EXEC_S) -> Ran:
    """Runs a program in the pod's container. Unanswered when it can't be started there, or its end is not heard of."""
    where = f"{pod.name} on {pod.node}"
    end = time.monotonic() + timeout_s
    open_s = min(OPEN_S, timeout_s)
    query = [("container", pod.container), ("stdout", "true"), ("stderr", "true")]
    query += [("command", word) for word in command]
    path = f"/api/v1/namespaces/{namespace}/pods/{pod.name}/exec"
    try:
        opened = api.open_socket(path, query, [_PROTOCOL], open_s)
    except WebSocketTimeoutException as bad:
        raise Unanswered(f"{where}: no program can be started there: no answer within {open_s:.0f} s") from bad
    except (WebSocketException, OSError, ValueError) as bad:
        raise Unanswered(f"{where}: no program can be started there: {_why(bad)}") from bad
    try:
        channels = _heard(opened, end)
        return Ran(_code(channels[_STATUS]), channels[_STDOUT], channels[_STDERR])
    except WebSocketTimeoutException as bad:
        why = f"it has not ended after {timeout_s:.0f} s"
        raise Unanswered(f"{where}: {command[0]} was not heard to the end: {why}") from bad
    except (WebSocketException, OSError, ValueError) as bad:
        raise Unanswered(f"{where}: {command[0]} was not heard to the end: {_why(bad)}") from bad
    finally:
        opened.shutdown()  # type: ignore[no-untyped-call]


def done_in(api: ApiServer, namespace: str, pod: OwnPod, command: Sequence[str], timeout_s: float) -> str:
    """What it printed, as of `run_in`; CommandError where it failed."""
    ran = run_in(api, namespace, pod, command, timeout_s)
    if ran.code:
        raise CommandError("; ".join((ran.err or ran.out).strip().splitlines()) or f"it failed ({ran.code})")
    return ran.out


def _heard(opened: WebSocket, end: float) -> dict[int, str]:
    """What came by each channel until the socket was closed. end: of time.monotonic()."""
    channels = {channel: bytearray() for channel in (_STDOUT, _STDERR, _STATUS)}
    while sum(map(len, channels.values())) <= LARGEST_ANSWER:
        opened.settimeout(max(_SOON_S, end - time.monotonic()))
        opcode, data = opened.recv_data()
        if opcode == ABNF.OPCODE_CLOSE:
            return {channel: bytes(text).decode(errors="replace") for channel, text in channels.items()}
        if data and data[0] in channels:
            channels[data[0]] += data[1:]
    raise ValueError(f"it printed more than {LARGEST_ANSWER >> 20} MiB")


def _code(text: str) -> int:
    """The exit code in the status that a stream ends with. ValueError where there is none, with what is there."""
    try:
        status = json.loads(text)
        return 0 if status["status"] == "Success" else int(status["details"]["causes"][0]["message"])
    except (ValueError, LookupError, TypeError, RecursionError) as bad:
        raise ValueError(_message(text) or text or "the stream ended without a status") from bad


def _message(text: str) -> str:
    """Of a Status; empty where the text is none."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        return str(json.loads(text)["message"])
    return ""


def _why(bad: Exception) -> str:
    """The Status' message where there is one; else the first line."""
    for detail in (getattr(bad, "resp_body", None), str(bad)):
        text = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail or "")
        start, end = text.find('{"kind":"Status"'), text.rfind("}")
        if start >= 0 and (message := _message(text[start : end + 1])):
            return message
    lines = str(getattr(bad, "reason", None) or bad).splitlines()
    return lines[0][:300] if lines else type(bad).__name__


def each(
    pods: Sequence[OwnPod], ask: Callable[[OwnPod], T], at_once: int = AT_ONCE
) -> Iterator[tuple[OwnPod, T | CommandError]]:
    """Asks of so many pods at the same time, in their order; what one fails by costs none of the others.

    By daemons, which no ^C waits for: the process' end closes their connections.
    """
    answers: list[Future[T | CommandError]] = [Future() for _ in pods]
    todo = deque(zip(pods, answers, strict=True))

    def contained(pod: OwnPod) -> T | CommandError:
        try:
            return ask(pod)
        except CommandError as bad:
            return bad

    def work() -> None:
        with suppress(IndexError):
            while True:
                pod, answer = todo.popleft()
                _settle(answer, partial(contained, pod))

    _open_as_many(min(at_once, len(pods)))
    for _ in range(min(at_once, len(pods))):
        Thread(target=work, daemon=True).start()
    for pod, answer in zip(pods, answers, strict=True):
        yield pod, answer.result()


def _open_as_many(more: int) -> None:
    """Lets this process have so many more connections, as far as the system allows: 1,024 files, or 256, are what most
    shells give.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    wanted = soft + more if hard == resource.RLIM_INFINITY else min(soft + more, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _settle(answer: Future[T], work: Callable[[], T]) -> None:
    """Into the answer goes what the work returns, or what it raises."""
    try:
        answer.set_result(work())
    except BaseException as bad:  # noqa: BLE001 - the thread that waits for the answer raises it
        answer.set_exception(bad)
