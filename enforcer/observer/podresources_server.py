"""The kubelet's podresources API (v1) on a unix socket of our own, for monitoring and device tools."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, TypeVar

import grpc

from enforcer.observer import podresources_answers as answers
from enforcer.observer.podresources import MOST_BYTES, Absent, Lister, Unanswered
from enforcer.report.mirror import Mirror
from numakin.process.log import Log
from numakin.process.threads import Backoff, Threaded, Threads
from numakin.wire import convert, podresources_pb2_grpc
from numakin.wire import local_pb2 as local
from numakin.wire import podresources_pb2 as pb

log = Log("observer.podresources")

MOST_CALLS = 16
"""Calls that wait or are answered at one time, one after the other; more are refused with RESOURCE_EXHAUSTED."""

RETRY = Backoff(first_s=0.5, longest_s=10.0)
"""Between two tries to have the socket."""

ROUND_S = 1.0
"""Between two looks at whether the socket is still there."""

ENDING_S = 0.05
"""Between two looks at whether the server has ended: calls that wait for the thread are run meanwhile."""

OPTIONS = (("grpc.max_send_message_length", MOST_BYTES),)


Answer = TypeVar("Answer")


class SocketError(RuntimeError):
    """The socket can't be served now; says which and why."""


class Calls(Executor):
    """gRPC's calls, which wait here until a supervised thread runs them."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.put((future, lambda: call(*arguments, **named)))
        return future

    def run(self, patience_s: float) -> None:
        """The next one, if it comes within that time."""
        try:
            future, call = self._waiting.get(timeout=patience_s)
        except Empty:
            return
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - gRPC answers with it
                future.set_exception(error)


class PodResourcesServer(Threaded, podresources_pb2_grpc.PodResourcesListerServicer):
    """kubelet: the socket of the kubelet's own API, or "off". failed: called for each question that it left open."""

    def __init__(self, path: str, kubelet: str, mirror: Mirror, failed: Callable[[], None], threads: Threads) -> None:
        self._path, self._mirror, self._failed = Path(path), mirror, failed
        self._kubelet = Lister(kubelet) if kubelet != "off" else None
        self._containers: dict[str, local.LocalContainer] = {}
        self._server: grpc.Server | None = None
        self._calls = Calls()
        self._thread = threads.thread("podresources socket", self._round, last=self._close, backoff=RETRY)

    def received(self, message: local.Containers) -> None:
        """The containers that run here, from the hook."""
        containers = {} if message.whole else dict(self._containers)
        containers.update((container.id, container) for container in message.containers)
        for container in message.gone:
            containers.pop(container, None)
        self._containers = containers

    def List(  # noqa: N802 - gRPC's name
        self, request: pb.ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> pb.ListPodResourcesResponse:
        del request
        return pb.ListPodResourcesResponse(pod_resources=self._pods(context))

    def Get(  # noqa: N802 - gRPC's name
        self, request: pb.GetPodResourcesRequest, context: grpc.ServicerContext
    ) -> pb.GetPodResourcesResponse:
        for pod in self._pods(context):
            if (pod.namespace, pod.name) == (request.pod_namespace, request.pod_name):
                return pb.GetPodResourcesResponse(pod_resources=pod)
        return context.abort(
            grpc.StatusCode.NOT_FOUND, f"pod {request.pod_namespace}/{request.pod_name} is not on this node"
        )

    def GetAllocatableResources(  # noqa: N802 - gRPC's name
        self, request: pb.AllocatableResourcesRequest, context: grpc.ServicerContext
    ) -> pb.AllocatableResourcesResponse:
        del request
        of_kubelet = self._asked(lambda kubelet: kubelet.allocatable(), context)
        start = self._mirror.start
        if start is None:
            self._unknown(context)
        machine = convert.machine_from(start.machine)
        return answers.allocatable(
            of_kubelet or pb.AllocatableResourcesResponse(), machine, convert.empty_from(start.machine)
        )

    def _pods(self, context: grpc.ServicerContext) -> list[pb.PodResources]:
        of_kubelet = self._asked(lambda kubelet: kubelet.pods(), context)
        if not self._mirror.known:
            self._unknown(context)
        return answers.pods(of_kubelet or (), self._containers.values(), self._mirror.occupancy)

    def _asked(self, question: Callable[[Lister], Answer], context: grpc.ServicerContext) -> Answer | None:
        """None where there is no kubelet. One that does not answer fails the call: half an answer would be taken for
        a node without devices.
        """
        try:
            return question(self._kubelet) if self._kubelet is not None else None
        except Absent:
            return None
        except Unanswered as error:
            self._failed()
            context.abort(grpc.StatusCode.UNAVAILABLE, f"the kubelet's podresources API did not answer: {error}")

    def _unknown(self, context: grpc.ServicerContext) -> NoReturn:
        context.abort(grpc.StatusCode.UNAVAILABLE, "the hook process has not reported the node yet")
        raise AssertionError("abort raises")

    def _round(self) -> None:
        """Serves, and anew where the socket was deleted."""
        if self._server is not None and not self._path.exists():
            self._close()
        if self._server is None:
            self._server = self._listening()
            log.info("podresources are served", socket=self._path)
        self._calls.run(ROUND_S)

    def _listening(self) -> grpc.Server:
        if _answers(str(self._path)):
            raise SocketError(f"podresources socket {self._path}: another process listens there; all else goes on")
        # Typed as a ThreadPoolExecutor; what it calls of it is submit().
        server = grpc.server(self._calls, options=OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)  # type: ignore[arg-type]
        podresources_pb2_grpc.add_PodResourcesListerServicer_to_server(self, server)
        try:
            server.add_insecure_port(f"unix:{self._path}")
            self._path.chmod(0o600)
        except (RuntimeError, OSError) as error:
            raise SocketError(f"podresources socket {self._path} can't be served: {error}; all else goes on") from None
        server.start()
        return server

    def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            ended = server.stop(grace=None)
            while not ended.wait(ENDING_S):
                self._calls.run(0)
        if self._kubelet is not None:
            self._kubelet.close()


def _answers(path: str) -> bool:
    """Whether a process listens at the socket. gRPC deletes one that is there, the kubelet's too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock, contextlib.suppress(OSError):
        sock.connect(path)
        return True
    return False
