"""The observer: the process that does all that may be slow, so that the hook never waits. It reads the hook's socket,
streams to every replica of the extender, and serves metrics and health.

    python -m enforcer.observer RUN_DIR
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from enforcer import control, log, supervisor, web
from enforcer.config import Config
from enforcer.device_watch import DeviceWatch
from enforcer.log import Log
from enforcer.report.mirror import Mirror
from enforcer.report.replicas import Replicas
from enforcer.report.stream import Endpoint, Stream
from enforcer.report.telling import Telling
from enforcer.version import VERSION
from enforcer.watching import Outlets, Watching
from proto import convert
from proto import local_pb2 as local
from proto import report_pb2 as pb
from proto.certificates import Files, Renewed

logger = Log("observer")

REDIAL_S = 0.2
"""Wait between two tries to reach the hook, which is local and starts in a tenth of that."""


class HookLink:
    """The connection to the hook; dialled again whenever it ends."""

    def __init__(self, path: Path, stop: threading.Event) -> None:
        self._path, self._stop = path, stop
        self._sock: socket.socket | None = None
        self._sending = threading.Lock()

    def messages(self) -> Iterator[local.FromHook | None]:
        """Everything the hook says, None at each new connection's end; ends when asked to stop."""
        while not self._stop.is_set():
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                    sock.connect(str(self._path))
                    self._sock = sock
                    self.send(local.ToHook(who=local.Who(role="observer")))
                    yield from _messages(sock)
            except OSError as error:
                logger.debug("the hook is not there", path=self._path, error=error)
            self._sock = None
            yield None
            self._stop.wait(REDIAL_S)

    def send(self, message: local.ToHook) -> None:
        """Lost without harm when the hook is away: promises are told again by the extender when the node comes back."""
        with self._sending:
            sock = self._sock
            if sock is None:
                return
            try:
                sock.sendall(control.framed(message))
            except OSError as error:
                logger.warning("the hook did not take a message", error=error)

    def close(self) -> None:
        if self._sock is not None:
            self._sock.shutdown(socket.SHUT_RDWR)


def _messages(sock: socket.socket) -> Iterator[local.FromHook]:
    buffer = bytearray()
    while data := sock.recv(1 << 18):
        buffer += data
        for body in control.taken(buffer):
            yield local.FromHook.FromString(body)


class Observer:
    """Wires the link, the mirror, the streams and the web server."""

    def __init__(self, run_dir: Path) -> None:
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._link = HookLink(run_dir / "hook.sock", self._stopping)
        self.mirror = Mirror()
        self._replicas: Replicas | None = None
        self._threads: list[threading.Thread] = []
        self._config: Config | None = None
        self.watching: Watching | None = None
        self._devices: DeviceWatch | None = None
        self.hook_present = False
        self.counters = web.Counters()

    def run(self) -> None:
        for message in self._link.messages():
            if message is None:
                self.hook_present = False
                continue
            self._heard(message)
        for one in self._threads:
            one.join(timeout=2)

    def stop(self) -> None:
        self._stopping.set()
        if self._replicas is not None:
            self._replicas.stop()
        if self.watching is not None:
            self.watching.stop()
        if self._devices is not None:
            self._devices.stop()
        self._link.close()

    @property
    def ready(self) -> tuple[bool, str]:
        """Ready is: the hook lives and the runtime has taken it as a plugin."""
        if not self.hook_present:
            return False, "the hook process is not there"
        with self._lock:
            if not self.mirror.registered:
                return False, "not registered with the container runtime"
        return True, "registered with the container runtime"

    @property
    def streaming(self) -> int:
        """How many replicas of the extender hear us."""
        return self._replicas.connected if self._replicas is not None else 0

    def _heard(self, message: local.FromHook) -> None:
        kind = message.WhichOneof("message")
        if kind == "start":
            self.hook_present = True
            with self._lock:
                self.mirror.started(message.start)
            self._begin(Config.from_json(message.start.config), message.start)
            if self._devices is not None:
                self._devices.hook_came()
        elif kind == "appeared" and self._devices is not None:
            self._devices.appeared(message.appeared.namespace, message.appeared.name)
        elif kind == "containers" and self.watching is not None:
            self.watching.hear(message.containers)
        elif kind == "report":
            with self._lock:
                self.mirror.reported(message.report)
            self.counters.took(message.report)
            if self._replicas is not None:
                self._replicas.changed()

    def _begin(self, config: Config, start: local.Start) -> None:
        """Once: the hook's configuration says where the extender and our own port are."""
        if self._config is not None:
            return
        self._config = config
        log.set_up(config.log_level, config.log_format)
        if config.metrics_listen:
            self._spawn(web.server(config.metrics_listen, self).serve_forever)
        if config.extender:
            tls = self._secured(config)
            places = [Endpoint(one, tls, config.extender_token) for one in config.extender.split(",")]
            self._replicas = Replicas(places, partial(self._stream, heartbeat_s=config.heartbeat_s))
            self._spawn(self._replicas.run)
        if config.podresources_socket != "off":
            failures = self.counters.podresources_failures
            self._devices = DeviceWatch(config.podresources_socket, self._equipped, failures.inc)
            self._spawn(self._devices.run)
        if config.observe == "auto" or config.replay:
            outlets = Outlets(
                self._learned, self._planned, self._movable, self._seen, occupancy=lambda: self.mirror.occupancy
            )
            self.watching = Watching(config, convert.machine_from(start.machine), outlets)
            self._spawn(self.watching.run)

    def _secured(self, config: Config) -> Renewed | None:
        """None where the extender is dialled without TLS."""
        if not config.extender_ca:
            return None
        files = Files(config.extender_cert, config.extender_key, config.extender_ca)
        found = Renewed(files, lambda why: logger.error("renewed certificates not taken", why=why))
        if config.extender_cert:
            self.counters.certificate(found)
        return found

    def _stream(self, endpoint: Endpoint, broken: Callable[[], None], *, heartbeat_s: float) -> Stream:
        with self._lock:
            telling = Telling(self.mirror)
        return Stream(endpoint, telling, self._lock, self._expected, broken, version=VERSION, heartbeat_s=heartbeat_s)

    def _expected(self, expect: pb.Expect) -> None:
        self._link.send(local.ToHook(expect=expect))
        if self._devices is not None:
            self._devices.appeared(expect.namespace, expect.name)

    def _equipped(self, devices: local.Devices) -> None:
        self._link.send(local.ToHook(devices=devices))

    def _learned(self, table: local.KinTable) -> None:
        self._link.send(local.ToHook(kin=table))

    def _planned(self, plan: local.Plan) -> None:
        self._link.send(local.ToHook(plan=plan))

    def _movable(self, moves: local.Moves) -> None:
        self._link.send(local.ToHook(moves=moves))

    def _seen(self, traffic: pb.Traffic) -> None:
        if self._replicas is not None:
            self._replicas.tell(pb.FromEnforcer(traffic=traffic))

    def _spawn(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        self._threads.append(thread)


def main(arguments: list[str]) -> int:
    supervisor.die_with_parent()
    log.set_up("info", "text")
    observer = Observer(Path(arguments[0]))
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: observer.stop())
    observer.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
