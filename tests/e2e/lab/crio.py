"""A real CRI-O with NRI, of CRIO_BIN: Debian has none."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from lab.standins.patience import until
from tests.e2e.lab import image
from tests.e2e.lab.runtime import CAP_SYS_RESOURCE, TOLERATES, RealRuntime, children_of, has_capability

PACKAGES = (
    "conmon", "runc", "crun", "skopeo", "containernetworking-plugins", "busybox-static", "libsqlite3-0", "libseccomp2",
    "libgpgme11t64", "ca-certificates",
)  # fmt: skip
"""What a CRI-O runs, its libraries, and what puts an image into its storage."""

CONFIG = """\
[crio]
root = "{folder}/storage"
runroot = "{folder}/storage-run"
storage_driver = "vfs"
log_dir = "{folder}/pods"
version_file = "{folder}/version"
version_file_persist = "{folder}/version-persist"
clean_shutdown_file = "{folder}/clean.shutdown"
[crio.api]
listen = "{socket}"
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
log_level = "debug"
default_runtime = "runc"
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
apparmor_profile = "unconfined"
pinns_path = "{pinns}"
namespaces_dir = "{folder}/ns"
container_exits_dir = "{folder}/exits"
container_attach_socket_dir = "{folder}/attach"
hooks_dir = ["{folder}/hooks"]
{handlers}
[crio.image]
pause_image = "{image}"
pause_command = "/bin/busybox"
signature_policy = "{folder}/policy.json"
signature_policy_dir = "{folder}/policies"
[crio.network]
network_dir = "{folder}/cni"
plugin_dirs = ["/usr/lib/cni"]
[crio.nri]
enable_nri = {nri}
nri_disable_connections = false
nri_listen = "{folder}/nri.sock"
nri_plugin_dir = "{folder}/plugins"
nri_plugin_config_dir = "{folder}/conf.d"
nri_plugin_registration_timeout = "{registration_timeout}"
nri_plugin_request_timeout = "{request_timeout}"
"""

RUNC = "/usr/sbin/runc"

UNPROTECTED_RUNC = f"""\
#!/bin/sh
for argument; do
    case $before in --bundle) sed -i 's/"oomScoreAdj": *-[0-9]*/"oomScoreAdj": 0/' "$argument/config.json" ;; esac
    before=$argument
done
exec {RUNC} "$@"
"""
"""For root that may not lower OOM scores, as Guaranteed pods have them: containerd has an option for that."""

HANDLER = """\
[crio.runtime.runtimes.{name}]
runtime_path = "{runc}"
runtime_type = "oci"
runtime_root = "{folder}/runc"
monitor_path = "/usr/bin/conmon"
monitor_cgroup = "pod"
"""

VALIDATOR = """\
[crio.nri.default_validator]
nri_enable_default_validator = true
nri_validator_required_plugins = {required}
nri_validator_tolerate_missing_plugins_annotation = "{tolerates}"
"""


class RealCrio(RealRuntime):
    """As `RealRuntime`."""

    title = "CRI-O"
    programs = ("crio", "pinns")
    registers_meanwhile = False

    def _configure(self) -> None:
        for name in ("hooks", "policies", "cni"):
            (self.folder / name).mkdir()
        (self.folder / "policy.json").write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
        text = CONFIG.format(
            folder=self.folder,
            socket=self.socket,
            image=image.NAME,
            pinns=self._program("pinns"),
            handlers="".join(
                HANDLER.format(name=name, folder=self.folder, runc=self._runc()) for name in ("runc", "kata-lab")
            ),
            nri="true" if self._nri else "false",
            request_timeout=self._request_timeout,
            registration_timeout=self._registration_timeout,
        )
        if self._required_plugins is not None:
            text += VALIDATOR.format(required=json.dumps(list(self._required_plugins)), tolerates=TOLERATES)
        (self.folder / "crio.conf").write_text(text)

    def _runc(self) -> str | Path:
        if has_capability(CAP_SYS_RESOURCE):
            return RUNC
        path = self.folder / "unprotected-runc"
        path.write_text(UNPROTECTED_RUNC)
        path.chmod(0o755)
        return path

    def _command(self) -> list[str | Path]:
        return [self._program("crio"), "--config", self.folder / "crio.conf", "--config-dir", ""]

    def import_image(self, archive: Path, name: str) -> None:
        storage = f"containers-storage:[vfs@{self.folder / 'storage'}+{self.folder / 'storage-run'}]{name}"
        policy = ("--policy", self.folder / "policy.json")
        there = self.folder / "import.tar"
        if archive != there:
            there.unlink(missing_ok=True)
            there.hardlink_to(archive)
        command = self._inside("/usr/bin/skopeo", *policy, "copy", f"docker-archive:{there}", storage)
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        until(lambda: self.kubelet.has_image(name), f"the imported image {name}")

    def starting(self, container: str) -> tuple[str, ...]:
        return "Starting container:", container

    def _held_up(self) -> list[int]:
        """The first processes of containers that are created, which wait for `runc start`: its monitors' children."""
        monitored = (child for pid in self._processes() for child in children_of(pid))
        return [pid for pid in monitored if Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"runc\0init\0")]
