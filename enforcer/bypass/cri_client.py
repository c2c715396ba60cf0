"""One connection to a container runtime's CRI socket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import grpc

from enforcer.nri.events import at_least
from numakin.process.log import Log
from numakin.wire import cri_pb2 as cri
from numakin.wire import cri_pb2_grpc

log = Log("bypass.runtime")

PATIENCE_S = 10.0
"""For one call. Runtimes answer these from memory, in a few milliseconds."""

LARGEST_ANSWER = 16 << 20
"""Bytes; the kubelet's own bound (pkg/kubelet/cri/remote, maxMsgSize)."""

BROADCAST_SINCE = {"containerd": (2, 0, 0), "cri-o": (1, 30, 0)}
"""The versions from which events go to every subscriber. Older ones have one queue for all who listen (containerd#7318,
cri-o#6466): to listen would take events away from a kubelet that relies on them, so those runtimes are only polled.
"""

AWAY = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED})


class RuntimeAway(Exception):
    """The runtime can't be reached, or does not answer."""


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """As the runtime names itself."""

    name: str
    version: str

    @property
    def broadcasts(self) -> bool:
        """Whether to listen to its events takes none away from the kubelet."""
        since = BROADCAST_SINCE.get(self.name.lower())
        return since is not None and at_least(self.version, since)


class CriClient:
    """Calls, each of which raises RuntimeAway; what ended between two calls is None."""

    def __init__(self, socket: str) -> None:
        """socket: its path, with or without unix:// before it."""
        options = [
            ("grpc.default_authority", "localhost"),
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_receive_message_length", LARGEST_ANSWER),
        ]
        self._channel = grpc.insecure_channel(f"unix://{socket.removeprefix('unix://')}", options=options)
        self._stub = cri_pb2_grpc.RuntimeServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def version(self) -> RuntimeVersion:
        answer = _asked(self._stub.Version, cri.VersionRequest())
        return RuntimeVersion(answer.runtime_name, answer.runtime_version)

    def containers(self) -> Sequence[cri.Container]:
        return tuple(_asked(self._stub.ListContainers, cri.ListContainersRequest()).containers)

    def sandboxes(self) -> Sequence[cri.PodSandbox]:
        return tuple(_asked(self._stub.ListPodSandbox, cri.ListPodSandboxRequest()).items)

    def container(self, key: str) -> cri.ContainerStatusResponse | None:
        request = cri.ContainerStatusRequest(container_id=key, verbose=True)
        answer: cri.ContainerStatusResponse | None = _asked_of(self._stub.ContainerStatus, request)
        return answer

    def sandbox(self, key: str) -> cri.PodSandboxStatusResponse | None:
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=key, verbose=True)
        answer: cri.PodSandboxStatusResponse | None = _asked_of(self._stub.PodSandboxStatus, request)
        return answer

    def events(self) -> Iterator[str]:
        """The id of each container that something happened to, as it happens; ends with the stream. Closing the
        connection ends it too.
        """
        try:
            for event in self._stub.GetContainerEvents(cri.GetEventsRequest()):
                yield event.container_id
        except grpc.RpcError as error:
            log.debug("the runtime's events ended", why=_why(error))
        except ValueError as error:  # grpc's error for a channel that was closed meanwhile
            log.debug("the runtime's events ended", why=error)


def _asked(call: Any, request: Any) -> Any:
    try:
        return call(request, timeout=PATIENCE_S)
    except grpc.RpcError as error:
        raise RuntimeAway(_why(error)) from error
    except ValueError as error:  # grpc's error for a channel that was closed meanwhile
        raise RuntimeAway(str(error)) from error


def _asked_of(call: Any, request: Any) -> Any:
    """Of one thing, which may have ended."""
    try:
        return _asked(call, request)
    except RuntimeAway as error:
        if isinstance(error.__cause__, grpc.RpcError) and error.__cause__.code() not in AWAY:
            log.debug("no status", request=request, why=error)
            return None
        raise


def _why(error: grpc.RpcError) -> str:
    return f"{error.code().name}: {error.details()}"
