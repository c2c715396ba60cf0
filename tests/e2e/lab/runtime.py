"""A real container runtime from a Debian root folder of its own, beside whatever this machine runs.

It sees the machine's /proc, /sys and /dev, and has its own everything else. It works with cgroup v1 and v2, with the
cgroupfs driver, and without CNI (pods live in the node's network). Inside, this machine's tree is at /host.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, ClassVar

from lab.standins.patience import PATIENCE_S, until
from tests.e2e.lab import image, place
from tests.e2e.lab.cri import Kubelet
from tests.e2e.lab.kernel import CGROUPS

PATIENT = "60s"
"""For a timeout of NRI's on which nothing is tested: its own ones are too short for Python on a busy machine."""

TOLERATES = "tolerate-missing-nri-plugins.noderesource.dev"
"""The annotation of a pod that may come before the required plugins."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

CAP_SYS_RESOURCE = 24


class RealRuntime(ABC):
    """One runtime; `start()` and `stop()` may be called in turn, and its containers outlive it as they should.

    root: the Debian root folder. programs: a folder of this machine with the runtime's own programs, in place of the
    root's. plugins, conf_d: folders for plugins that it launches and their drop-in configuration; put files there before
    `start()`. Timeouts are NRI's, by default as NRI has them. nri: False for a runtime that has none. required_plugins:
    without which NRI's default validator lets no container be created; None: it is off, as by default.
    """

    title: ClassVar[str]
    programs: ClassVar[tuple[str, ...]]
    """Its own, of which the first is the runtime."""

    registers_meanwhile: ClassVar[bool] = True
    """Whether it takes a plugin while a container's start is under way."""

    def __init__(
        self,
        root: Path,
        programs: Path | None = None,
        *,
        request_timeout: str = "2s",
        registration_timeout: str = "5s",
        nri: bool = True,
        required_plugins: Sequence[str] | None = None,
    ) -> None:
        self._root = root
        self._programs = programs
        # A short path: a unix socket's has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="numakin-lab-", dir="/tmp"))
        self.socket = self.folder / "runtime.sock"
        self.nri_socket = self.folder / "nri.sock"
        self._sockets = (self.socket, self.nri_socket) if nri else (self.socket,)
        self.plugins = self.folder / "plugins"
        self.conf_d = self.folder / "conf.d"
        self.log = self.folder / "log"
        for made in (self.plugins, self.conf_d):
            made.mkdir()
        self._nri, self._required_plugins = nri, required_plugins
        self._registration_timeout, self._request_timeout = registration_timeout, request_timeout
        self._configure()
        self.cgroup_parent = f"/{self.folder.name}"
        self._world: subprocess.Popen[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._kubelet: Kubelet | None = None

    @abstractmethod
    def _configure(self) -> None:
        """Writes its configuration into `folder`."""

    @abstractmethod
    def _command(self) -> list[str | Path]:
        """What runs, as it is seen from inside."""

    @abstractmethod
    def import_image(self, archive: Path, name: str) -> None:
        """archive: as `docker save` or `buildah push ... docker-archive:` writes it."""

    @abstractmethod
    def starting(self, container: str) -> tuple[str, ...]:
        """Words of the line of its log by which a container's start is under way."""

    @abstractmethod
    def _held_up(self) -> list[int]:
        """The processes without which no container's start ends."""

    @property
    def kubelet(self) -> Kubelet:
        if self._kubelet is None:
            self._kubelet = Kubelet(self.socket, self.cgroup_parent)
        return self._kubelet

    def start(self) -> None:
        """Returns when it answers CRI and, with NRI, listens for plugins. Raises TimeoutError with the log's end."""
        first = self._world is None
        if first:
            self._enter()
        self._log = self.log.open("ab")
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self._inside(*self._command())],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=self._environment,
        )
        try:
            until(lambda: all(socket.exists() for socket in self._sockets), f"{type(self).__name__}'s sockets")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.log_end()}") from None
        until(self.kubelet.initialized, "the runtime's CRI to be initialized")
        if first:
            tar = self.folder / "image.tar"
            image.write(tar, self._root / "bin/busybox")
            self.import_image(tar, image.NAME)

    def stop(self) -> None:
        """As systemd would: containers go on."""
        self._end_with(signal.SIGTERM)

    def kill(self) -> None:
        """As a crash would: containers go on."""
        self._end_with(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def destroy(self) -> None:
        """Ends everything that was started, its containers included, and removes every trace."""
        if self._world is None:
            shutil.rmtree(self.folder)
            return
        self.kill()
        for pid in self._processes():
            _end_tree(pid, keep=self._world.pid)
        self._world.communicate()
        if self._kubelet is not None:
            self._kubelet.close()
        until(self._cgroups_gone, f"the lab's cgroups {self.cgroup_parent} to empty")
        shutil.rmtree(self.folder)

    @contextmanager
    def stalled_starts(self) -> Iterator[None]:
        """The start of a container that is created takes as long as the body."""
        stalled = self._held_up()
        for pid in stalled:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stalled:
                os.kill(pid, signal.SIGCONT)

    @property
    def pod_resources(self) -> Path:
        """Where a kubelet of this runtime has its PodResources socket."""
        return self.folder / "kubelet" / "pod-resources"

    def wait_for_log(self, *words: str) -> None:
        """Until a line of its log has all the words."""

        def there() -> bool:
            return any(
                all(text in line for text in words) for line in self.log.read_text(errors="replace").splitlines()
            )

        until(there, f"a line of the runtime's log with {' and '.join(words)}")

    def log_end(self, lines: int = 20) -> str:
        return "\n".join(line[:400] for line in self.log.read_text(errors="replace").splitlines()[-lines:])

    def beside(self, *command: str | Path) -> list[str | Path]:
        """A command that sees this machine's tree, with mounts of its own that end with this runtime."""
        assert self._world is not None
        return ["nsenter", "-t", str(self._world.pid), "-m", *command]

    def _program(self, name: str) -> str:
        """As it is found inside."""
        return f"/host{self._programs}/{name}" if self._programs else f"/usr/bin/{name}"

    @property
    def _environment(self) -> dict[str, str]:
        """A program of the given folder goes before the root's."""
        return {**os.environ, "PATH": f"/host{self._programs}:{PATH}" if self._programs else PATH}

    def _inside(self, *command: str | Path) -> list[str | Path]:
        assert self._world is not None
        return ["nsenter", "-t", str(self._world.pid), "-m", "chroot", self._root, *command]

    def _enter(self) -> None:
        self._world = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", place.LAB / "world", self._root, self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._world.stdout is not None
        if self._world.stdout.readline() != "ready\n":
            raise RuntimeError("the lab's mounts failed; see its messages above")

    def _end_with(self, sent: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(sent)
        self._process.wait(PATIENCE_S)
        self._process = None
        for socket in self._sockets:
            socket.unlink(missing_ok=True)
        if self._log is not None:
            self._log.close()

    def _processes(self) -> list[int]:
        """Those in its mount namespace: itself, shims or monitors, containers' not."""
        assert self._world is not None
        namespace = Path(f"/proc/{self._world.pid}/ns/mnt").readlink()

        def there(pid: int) -> bool:
            try:
                return Path(f"/proc/{pid}/ns/mnt").readlink() == namespace
            except OSError:  # gone meanwhile
                return False

        return [pid for pid in _processes() if there(pid)]

    def _cgroups_gone(self) -> bool:
        """Removes what runc had no chance to."""
        tops = [top for top in hierarchies() if (top / self.folder.name).is_dir()]
        for top in tops:
            folders = sorted((top / self.folder.name).rglob("*/"), reverse=True)
            for folder in [*folders, top / self.folder.name]:
                try:
                    folder.rmdir()
                except OSError:  # its last process is still on its way out
                    return False
        return True


def root_folder(name: str, suite: str, *packages: str) -> Path:
    """A Debian root folder with these packages in it, made if need be (20 s). Raises CalledProcessError."""
    folder = place.cache() / name
    subprocess.run([place.LAB / "rootfs", suite, folder, *packages], check=True, stdin=subprocess.DEVNULL)
    return folder


def has_capability(number: int) -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> number & 1)


def hierarchies() -> Iterator[Path]:
    """Where cgroup file systems are mounted: one folder on cgroup v2, one for each controller on v1."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2") and Path(where).is_relative_to(CGROUPS):
            yield Path(where)


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def children_of(pid: int) -> list[int]:
    """Of a process; empty where it has gone."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _end_tree(pid: int, keep: int) -> None:
    """Kills a shim's or monitor's containers, then itself, which reaps them; never `keep`."""
    if pid == keep:
        return
    for child in children_of(pid):
        _end_tree(child, keep)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
