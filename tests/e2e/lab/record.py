"""Records what a real runtime says over NRI and CRI while pods live and end, as tests/recordings/nri and
tests/enforcer/bypass/recorded have it.

Usage: python -m tests.e2e.lab.record RUNTIME

RUNTIME: the name of one of `installations()`. In a network namespace of its own, since it makes a pod network, with a port
of the node that leads to a pod. Between it and a plugin, which pins each container to CPU 1 and NUMA node 0, stands this
program and passes everything on. Written are RUNTIME-life.jsonl and, after the runtime's restart, RUNTIME-restarted.jsonl
with NRI's bytes, and CRI's answers of a pod in each kind of network: RUNTIME-host-network.json, -own-network, -host-port.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format

from enforcer.nri.handlers import Creation, Handlers
from enforcer.nri.session import Stage
from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from numakin.wire import nri_pb2 as nri
from tests.e2e.lab import crio
from tests.e2e.lab.cri import POD_NETWORK, Kubelet, Pod
from tests.e2e.lab.kubelet import has_address
from tests.e2e.lab.place import REPOSITORY
from tests.e2e.lab.runtime import PATIENT, root_folder
from tests.e2e.lab.runtimes import CONTAINERD_PACKAGES, installations
from tests.enforcer.nri.running import Running

NRI = REPOSITORY / "tests/recordings/nri"
CRI = REPOSITORY / "tests/enforcer/bypass/recorded"

UIDS = [f"{digit * 8}-2222-3333-4444-555555555555" for digit in "123456789"]

SMALL = cri.LinuxContainerResources(cpu_shares=512, cpu_period=100_000, memory_limit_in_bytes=64 << 20)
RESIZED = cri.LinuxContainerResources(
    cpu_shares=1024, cpu_period=100_000, cpu_quota=200_000, memory_limit_in_bytes=96 << 20
)
GROUP = {"group.numakin.io": "shop"}
NODE_ADDRESS, HOST_PORT = "192.0.2.1", 8080
POD_ADDRESSES = "198.51.100.0/24"


class Recorder:
    """Passes bytes on between a plugin, which dials `path`, and the runtime at `beyond`, and notes them."""

    def __init__(self, path: Path, beyond: Path) -> None:
        self._beyond = beyond
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._lock, self._lines = threading.Lock(), list[dict[str, Any]]()
        threading.Thread(target=self._accept, daemon=True).start()

    def write(self, file: Path) -> None:
        """What was said since the last call."""
        with self._lock:
            lines, self._lines = self._lines, []
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{file}: {len(lines)} reads and writes")

    def _accept(self) -> None:
        while True:
            plugin, _ = self._listener.accept()
            runtime = socket.socket(socket.AF_UNIX)
            try:
                runtime.connect(str(self._beyond))
            except OSError:
                plugin.close()
                continue
            for here, there, direction in ((runtime, plugin, "in"), (plugin, runtime, "out")):
                threading.Thread(target=self._pass, args=(here, there, direction), daemon=True).start()

    def _pass(self, here: socket.socket, there: socket.socket, direction: str) -> None:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while data := here.recv(1 << 20):
                with self._lock:
                    line = {"t": round(time.monotonic() - began, 6), "dir": direction, "hex": data.hex()}
                    self._lines.append(line)
                there.sendall(data)
        with contextlib.suppress(OSError):
            there.shutdown(socket.SHUT_RDWR)


def pinned(_pod: nri.PodSandbox, _container: nri.Container) -> Creation:
    adjust = nri.ContainerAdjustment()
    adjust.linux.resources.cpu.cpus, adjust.linux.resources.cpu.mems = "1", "0"
    return adjust, []


@contextmanager
def plugin(path: Path) -> Iterator[Running]:
    """Wants every event."""
    ignored = {
        name: lambda *_: None
        for name in Handlers.__dataclass_fields__
        if name not in ("concerns", "configure", "shutdown", "validate_container_adjustment")
    }
    deciding = {"synchronize": lambda *_: [], "create_container": pinned}
    deciding |= {name: lambda *_: [] for name in ("update_container", "stop_container")}
    with Running(path, Handlers(**ignored | deciding), index="10", name="lab") as running:
        running.wait_for(Stage.SYNCHRONIZED)
        yield running


def make_node_network() -> None:
    """That of a namespace of its own."""
    for command in (
        ("link", "set", "lo", "up"), ("link", "add", "name", "outside", "type", "bridge"),
        ("address", "add", f"{NODE_ADDRESS}/24", "dev", "outside"), ("link", "set", "outside", "up"),
    ):  # fmt: skip
        subprocess.run(["ip", *command], check=True)


def pod_network(addresses: Path) -> dict[str, Any]:
    """A CNI configuration. addresses: a folder for those that are taken."""
    ipam = {"type": "host-local", "ranges": [[{"subnet": POD_ADDRESSES}]], "dataDir": str(addresses)}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": [{"type": "ptp", "ipam": ipam}, portmap]}


def main(name: str) -> None:
    (installation,) = (each for each in installations() if each.name == name)
    root = root_folder(f"record-{installation.suite}", installation.suite, *CONTAINERD_PACKAGES, *crio.PACKAGES)
    if has_address():
        os.execvp("unshare", ["unshare", "-n", sys.executable, "-m", "tests.e2e.lab.record", name])
    make_node_network()
    runtime = installation.kind(root, installation.programs, registration_timeout=PATIENT, request_timeout=PATIENT)
    (runtime.folder / "cni" / "10-lab.conflist").write_text(json.dumps(pod_network(runtime.folder / "addresses")))
    try:
        runtime.start()
        kubelet = runtime.kubelet
        path = runtime.folder / "recorder.sock"
        recorder = Recorder(path, runtime.nri_socket)
        before = kubelet.run_pod("before", uid=UIDS[0], annotations=GROUP)
        kubelet.run(before, "old", resources=SMALL)
        with plugin(path):
            kept = life(kubelet)
            for pod, network in (("cart", "host-network"), ("own", "own-network"), ("exposed", "host-port")):
                answers(kubelet, kept[pod], CRI / f"{name}-{network}.json")
            end(kubelet, before)
            runtime.stop()
        recorder.write(NRI / f"{name}-life.jsonl")
        runtime.start()
        with plugin(path):
            for pod in kept.values():
                end(kubelet, pod)
        recorder.write(NRI / f"{name}-restarted.jsonl")
    finally:
        runtime.destroy()


def life(kubelet: Kubelet) -> dict[str, Pod]:
    """What a kubelet asks for; the pods that are there at the end of it."""
    cart = kubelet.run_pod("cart", uid=UIDS[1], annotations=GROUP, labels={"app": "cart"}, resources=SMALL)
    main = kubelet.run(cart, "main", resources=SMALL)
    kubelet.update(main, RESIZED)
    os.kill(kubelet.pid(main), signal.SIGKILL)
    until(
        lambda: kubelet.container_status(main).status.state == cri.CONTAINER_EXITED,
        "the runtime to see its container end",
    )
    kubelet.run(cart, "main", resources=SMALL, attempt=1)
    fail(kubelet, cart)
    gone = kubelet.run_pod("gone", uid=UIDS[2])
    kubelet.run(gone, "main", resources=SMALL)
    end(kubelet, gone)
    own = kubelet.run_pod("own", uid=UIDS[3], annotations=GROUP, namespaces=POD_NETWORK, resources=SMALL)
    kubelet.run(own, "main", resources=SMALL)
    ports = {HOST_PORT: 80}
    exposed = kubelet.run_pod(
        "exposed", uid=UIDS[4], annotations=GROUP, namespaces=POD_NETWORK, resources=SMALL, host_ports=ports
    )
    kubelet.run(exposed, "main", resources=SMALL)
    return {"cart": cart, "own": own, "exposed": exposed}


def fail(kubelet: Kubelet, pod: Pod) -> None:
    """A container whose program is not there: containerd fails its start, CRI-O its creation."""
    try:
        failed = kubelet.create(pod, "broken", command=("/no/such/program",), resources=SMALL)
    except grpc.RpcError:
        return
    with contextlib.suppress(grpc.RpcError):
        kubelet.start(failed)
    kubelet.remove(failed)


def end(kubelet: Kubelet, pod: Pod) -> None:
    kubelet.end_pod(pod.id)


def answers(kubelet: Kubelet, pod: Pod, file: Path) -> None:
    """CRI's, about a pod and its container `main`."""
    listed = next(
        each
        for each in kubelet.containers()
        if each.pod_sandbox_id == pod.id and each.metadata.name == "main" and each.state == cri.CONTAINER_RUNNING
    )
    said = {"listed": listed, "container": kubelet.container_status(listed.id), "sandbox": kubelet.pod_status(pod)}
    file.write_text(
        json.dumps(
            {key: json_format.MessageToDict(each, preserving_proto_field_name=True) for key, each in said.items()},
            indent=1,
        )
        + "\n"
    )
    print(f"{file}: written")


if __name__ == "__main__":
    main(sys.argv[1])
