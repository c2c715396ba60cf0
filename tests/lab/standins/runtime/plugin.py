"""A plugin by hand: what it is sent, and what it is to answer."""

import contextlib
import socket
import threading

from lab.standins.patience import PATIENCE_S
from lab.standins.runtime import framing
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2

UNPINNED = ("", "")

LATE_S = 3.0
"""Long enough for an answer that is not to be late, and short enough to wait for."""


class Plugin:
    """Answers as its table says, by method: a message, a status code, bytes to send instead, or a function of the
    request's payload that gives one of these. Register as `index`.
    """

    def __init__(self, path, index="10", **answers):
        self.heard = []
        self.answered = threading.Event()
        self._answers = {"Configure": nri.ConfigureResponse(), "Synchronize": nri.SynchronizeResponse()} | answers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._thread = threading.Thread(target=self._run, args=(index,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        self._socket.close()

    def update(self, *updates):
        """UpdateContainers, and the answer is not waited for."""
        payload = nri.UpdateContainersRequest(update=updates).SerializeToString()
        body = ttrpc_pb2.Request(service="nri.pkg.api.v1alpha1.Runtime", method="UpdateContainers", payload=payload)
        self._socket.sendall(framing.write(framing.Message(2, 3, framing.REQUEST, body.SerializeToString())))

    def wait_for_end(self):
        """Until the runtime closes the connection."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self, index):
        register = nri.RegisterPluginRequest(plugin_name="test", plugin_idx=index).SerializeToString()
        body = ttrpc_pb2.Request(service="nri.pkg.api.v1alpha1.Runtime", method="RegisterPlugin", payload=register)
        with contextlib.suppress(OSError):
            self._socket.sendall(framing.write(framing.Message(2, 1, framing.REQUEST, body.SerializeToString())))
            incoming = framing.Incoming()
            while data := self._socket.recv(1 << 16):
                for message in incoming.feed(data):
                    if message.kind == framing.REQUEST:
                        self._answer(message)
                    elif message.stream > 1:
                        self.answered.set()

    def _answer(self, message):
        request = ttrpc_pb2.Request.FromString(message.payload)
        self.heard.append(request.method)
        answer = self._answers.get(request.method, nri.Empty())
        if callable(answer):
            answer = answer(request.payload)
        if isinstance(answer, bytes):
            self._socket.sendall(answer)
            return
        response = ttrpc_pb2.Response()
        if isinstance(answer, int):
            response.status.code, response.status.message = answer, "says no"
        else:
            response.payload = answer.SerializeToString()
        self._socket.sendall(
            framing.write(framing.Message(1, message.stream, framing.RESPONSE, response.SerializeToString()))
        )


def created(cpus="", mems="", updates=()):
    response = nri.CreateContainerResponse(update=updates)
    response.adjust.linux.resources.cpu.cpus, response.adjust.linux.resources.cpu.mems = cpus, mems
    return response


def update(container_id, cpus="", mems=""):
    resources = nri.LinuxResources(cpu=nri.LinuxCPU(cpus=cpus, mems=mems))
    return nri.ContainerUpdate(container_id=container_id, linux=nri.LinuxContainerUpdate(resources=resources))


def place(container):
    return container.cpus, container.mems
