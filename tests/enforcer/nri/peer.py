"""The runtime's bytes for tests of a session, made by the stand-in's own framing."""

import itertools
from collections.abc import Iterator

from google.protobuf.message import Message

from enforcer.nri.calls import UpdateAnswer
from enforcer.nri.handlers import Handlers
from enforcer.nri.identity import Identity
from enforcer.nri.session import Session
from enforcer.nri.stats import Stats
from lab.standins.runtime import framing
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2
from tests.enforcer.nri.recording import answers_in

PLUGIN_SERVICE = "nri.pkg.api.v1alpha1.Plugin"


def request(stream: int, method: str, message: Message | bytes, service: str = PLUGIN_SERVICE) -> bytes:
    payload = message if isinstance(message, bytes) else message.SerializeToString()
    body = ttrpc_pb2.Request(service=service, method=method, payload=payload, timeout_nano=2_000_000_000)
    return framing.write(framing.Message(1, stream, framing.REQUEST, body.SerializeToString()))


def response(stream: int, message: Message | None = None, code: int = 0, text: str = "") -> bytes:
    body = ttrpc_pb2.Response(payload=message.SerializeToString() if message else b"")
    if code:
        body.status.code, body.status.message = code, text
    return framing.write(framing.Message(2, stream, framing.RESPONSE, body.SerializeToString()))


class Talk:
    """A session that has registered, and a runtime's words to it: one that takes updates out of turn."""

    def __init__(self, handlers: Handlers, *, ready: bool = True, **configure: str | int) -> None:
        self.stats = Stats()
        self.session = Session(Identity("10", "numakin"), handlers, self.stats)
        self._streams: Iterator[int] = itertools.count(1, 2)
        self.registration = self.session.register()
        if ready:
            self.feed(response(1))
            about = {"runtime_name": "containerd", "runtime_version": "2.3.9", "NRI_version": "v0.12.1", **configure}
            self.ask("Configure", nri.ConfigureRequest(**about))
            self.ask("Synchronize", nri.SynchronizeRequest())

    def feed(self, data: bytes) -> bytes:
        return b"".join(self.session.receive(data))

    def ask(self, method: str, message: Message | bytes, service: str = PLUGIN_SERVICE) -> ttrpc_pb2.Response:
        stream = next(self._streams)
        return answers_in(self.feed(request(stream, method, message, service)))[stream]

    def update(self, container_id: str) -> list[UpdateAnswer]:
        """Queues an UpdateContainers; its answer appears in the list."""
        answers: list[UpdateAnswer] = []
        self.session.update_containers([nri.ContainerUpdate(container_id=container_id)], answers.append)
        return answers


POD = nri.PodSandbox(id="p1", name="cart", namespace="shop", uid="u1")
CONTAINER = nri.Container(id="c1", pod_sandbox_id="p1", name="server")
ABOUT = {"pod": POD, "container": CONTAINER}
OTHER = nri.ContainerUpdate(container_id="other")


def raises(*_: object) -> None:
    """A handler that is at fault."""
    raise ZeroDivisionError("boom")
