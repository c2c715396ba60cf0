"""A real containerd with NRI: Debian's, or one of CONTAINERD_BIN."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from lab.standins.patience import until
from tests.e2e.lab import image
from tests.e2e.lab.runtime import CAP_SYS_RESOURCE, TOLERATES, RealRuntime, has_capability

CONFIG = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{socket}"
[debug]
  level = "debug"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = {restrict_oom_score_adj}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
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

VALIDATOR = """\
  [plugins."io.containerd.nri.v1.nri".default_validator]
    enable = true
    required_plugins = {required}
    tolerate_missing_plugins_annotation = "{tolerates}"
"""
"""Since containerd 2.2."""


class RealContainerd(RealRuntime):
    """As `RealRuntime`."""

    title = "containerd"
    programs = ("containerd", "containerd-shim-runc-v2", "ctr")

    def _configure(self) -> None:
        (self.folder / "cni").mkdir()
        text = CONFIG.format(
            folder=self.folder,
            socket=self.socket,
            image=image.NAME,
            # runc would have to lower the pause container's score below ours.
            restrict_oom_score_adj="false" if has_capability(CAP_SYS_RESOURCE) else "true",
            nri_disabled="false" if self._nri else "true",
            request_timeout=self._request_timeout,
            registration_timeout=self._registration_timeout,
        )
        if self._required_plugins is not None:
            text += VALIDATOR.format(required=json.dumps(list(self._required_plugins)), tolerates=TOLERATES)
        (self.folder / "config.toml").write_text(text)

    def _command(self) -> list[str | Path]:
        return [self._program("containerd"), "--config", self.folder / "config.toml"]

    def import_image(self, archive: Path, name: str) -> None:
        command = self._inside(self._program("ctr"), "-a", self.socket, "-n", "k8s.io", "images", "import", "-")
        with archive.open("rb") as data:
            subprocess.run(command, check=True, capture_output=True, stdin=data)
        until(lambda: self.kubelet.has_image(name), f"the imported image {name}")

    def starting(self, container: str) -> tuple[str, ...]:
        return "StartContainer for", container

    def _held_up(self) -> list[int]:
        """Its shims."""
        return [pid for pid in self._processes() if b"-shim" in Path(f"/proc/{pid}/cmdline").read_bytes()]
