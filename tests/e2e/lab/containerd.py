"""A real containerd with NRI, from a Debian root folder of its own, beside whatever this machine runs.

It sees the machine's /proc, /sys and /dev, and has its own everything else. It works with cgroup v1 and v2, with the
cgroupfs driver, and without CNI (pods live in the node's network).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lab.standins.patience import PATIENCE_S, until
from tests.e2e.lab import image, place
from tests.e2e.lab.cri import Kubelet
from tests.e2e.lab.kernel import CGROUPS

SUITES = {"trixie": "containerd 1.7, NRI 0.6", "sid": "containerd 2, NRI 0.8 or newer"}

CAP_SYS_RESOURCE = 24

PATIENT = "60s"
"""For a timeout of NRI's on which nothing is tested: its own ones are too short for Python on a busy machine."""

CONFIG = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/containerd.sock"
[debug]
  level = "debug"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = {restrict_oom_score_adj}
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata-lab]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata-lab.options]
      SystemdCgroup = false
[plugins."io.containerd.nri.v1.nri"]
  disable = {nri_disabled}
  disable_connections = false
  socket_path = "{folder}/nri.sock"
  plugin_path = "{folder}/plugins"
  plugin_config_path = "{folder}/conf.d"
  plugin_registration_timeout = "{registration_timeout}"
  plugin_request_timeout = "{request_timeout}"
"""


def root_folder(suite: str) -> Path:
    """A Debian root folder with containerd in it, made if need be (20 s). Raises CalledProcessError."""
    folder = place.cache() / f"containerd-{suite}"
    subprocess.run([place.LAB / "rootfs", suite, folder], check=True, stdin=subprocess.DEVNULL)
    return folder


class RealContainerd:
    """One containerd; `start()` and `stop()` may be called in turn, and its containers outlive it as they should.

    plugins, conf_d: folders for plugins that it launches and their drop-in configuration; put files there before
    `start()`. Inside, this machine's tree is at /host. Timeouts are NRI's, by default as NRI has them. nri: False for a
    runtime that has none.
    """

    def __init__(
        self, suite: str, *, request_timeout: str = "2s", registration_timeout: str = "5s", nri: bool = True
    ) -> None:
        self.suite = suite
        self._root = root_folder(suite)
        # A short path: a unix socket's has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="numakin-lab-", dir="/tmp"))
        self.socket = self.folder / "containerd.sock"
        self.nri_socket = self.folder / "nri.sock"
        self._sockets = (self.socket, self.nri_socket) if nri else (self.socket,)
        self.plugins = self.folder / "plugins"
        self.conf_d = self.folder / "conf.d"
        self.log = self.folder / "log"
        for made in (self.plugins, self.conf_d):
            made.mkdir()
        text = CONFIG.format(
            folder=self.folder,
            image=image.NAME,
            # runc would have to lower the pause container's score below ours.
            restrict_oom_score_adj="false" if has_capability(CAP_SYS_RESOURCE) else "true",
            nri_disabled="false" if nri else "true",
            request_timeout=request_timeout,
            registration_timeout=registration_timeout,
        )
        (self.folder / "config.toml").write_text(text)
        self.cgroup_parent = f"/{self.folder.name}"
        self._world: subprocess.Popen[str] | None = None
        self._containerd: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._kubelet: Kubelet | None = None

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
        self._containerd = subprocess.Popen(
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                *self._inside("/usr/bin/containerd", "--config", self.folder / "config.toml"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        try:
            until(lambda: all(socket.exists() for socket in self._sockets), "containerd's sockets")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.log_end()}") from None
        until(self.kubelet.initialized, "containerd's CRI to be initialized")
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
            return
        self.kill()
        for pid in _processes_in(self._world.pid):
            _end_tree(pid, keep=self._world.pid)
        self._world.communicate()
        if self._kubelet is not None:
            self._kubelet.close()
        until(self._cgroups_gone, f"the lab's cgroups {self.cgroup_parent} to empty")
        shutil.rmtree(self.folder)

    @contextmanager
    def stalled_shims(self) -> Iterator[None]:
        """Whatever the runtime asks of its containers takes as long as the body."""
        assert self._world is not None
        shims = [pid for pid in _processes_in(self._world.pid) if b"-shim" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        for shim in shims:
            os.kill(shim, signal.SIGSTOP)
        try:
            yield
        finally:
            for shim in shims:
                os.kill(shim, signal.SIGCONT)

    @property
    def pod_resources(self) -> Path:
        """Where a kubelet of this runtime has its PodResources socket."""
        return self.folder / "kubelet" / "pod-resources"

    def import_image(self, archive: Path, name: str) -> None:
        """archive: as `docker save` or `buildah push ... docker-archive:` writes it."""
        command = self._inside("/usr/bin/ctr", "-a", self.socket, "-n", "k8s.io", "images", "import", "-")
        with archive.open("rb") as data:
            subprocess.run(command, check=True, capture_output=True, stdin=data)
        until(lambda: self.kubelet.has_image(name), f"the imported image {name}")

    def wait_for_log(self, *words: str) -> None:
        """Until a line of its log has all the words."""

        def there() -> bool:
            return any(
                all(text in line for text in words) for line in self.log.read_text(errors="replace").splitlines()
            )

        until(there, f"a line of containerd's log with {' and '.join(words)}")

    def log_end(self, lines: int = 20) -> str:
        return "\n".join(line[:400] for line in self.log.read_text(errors="replace").splitlines()[-lines:])

    def beside(self, *command: str | Path) -> list[str | Path]:
        """A command that sees this machine's tree, with mounts of its own that end with this containerd."""
        assert self._world is not None
        return ["nsenter", "-t", str(self._world.pid), "-m", *command]

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
        if self._containerd is None:
            return
        self._containerd.send_signal(sent)
        self._containerd.wait(PATIENCE_S)
        self._containerd = None
        for socket in self._sockets:
            socket.unlink(missing_ok=True)
        if self._log is not None:
            self._log.close()

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


def _processes_in(world: int) -> list[int]:
    """The shims: processes in the mount namespace of `world`."""
    namespace = Path(f"/proc/{world}/ns/mnt").readlink()

    def there(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/ns/mnt").readlink() == namespace
        except OSError:  # gone meanwhile
            return False

    return [pid for pid in _processes() if there(pid)]


def _end_tree(pid: int, keep: int) -> None:
    """Kills a shim's containers, then the shim, which reaps them; never `keep`."""
    if pid == keep:
        return
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            _end_tree(int(child), keep)
        subprocess.run(["kill", "-KILL", str(pid)], check=False, stderr=subprocess.DEVNULL)
    except OSError:  # gone meanwhile
        return
