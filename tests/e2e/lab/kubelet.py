"""A real kubelet over a containerd of the lab, with the node's network and a cgroup tree of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster
from lab.cluster.processes import Process, executed
from numakin.process.ports import free_port
from tests.e2e.lab.runtime import RealRuntime, hierarchies

KEPT = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What a kubelet writes for the whole machine: it finds its values there already, in files of its own."""

DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")

HUGEPAGES = Path("/sys/kernel/mm/hugepages")


class RealKubelet:
    """start() may follow stop(); pods go on meanwhile. configure() is for when it does not run."""

    def __init__(self, cluster: Cluster, binaries: Binaries, runtime: RealRuntime, node: str) -> None:
        self.node = node
        folder = runtime.folder
        self.static_pods = folder / "static-pods"
        self.device_plugins = folder / "device-plugins"
        for made in (self.static_pods, self.device_plugins):
            made.mkdir()
        self._runtime = runtime
        self._release = release = cluster.plane.release
        kubeconfig = cluster.kubelet_credentials(node, folder / "kubelet.kubeconfig")
        self._config_file = folder / "kubelet.json"
        self.configure()
        options = (
            f"--config={self._config_file}", f"--kubeconfig={kubeconfig}", f"--hostname-override={node}",
            f"--root-dir={folder / 'kubelet'}", f"--container-runtime-endpoint=unix://{runtime.socket}",
            *release.kubelet_options,
        )  # fmt: skip
        command = runtime.beside(binaries["kubelet"], *options)
        self.process = Process("kubelet", executed(*map(str, command)), (), folder)
        for hierarchy in hierarchies():
            (hierarchy / folder.name).mkdir(exist_ok=True)
            _usable(hierarchy, hierarchy / folder.name)
        self._keep_sysctls()
        self._keep_device_plugins()
        self._hide_hugepages()

    def configure(self, **more: object) -> None:
        """more: of the KubeletConfiguration's fields. Without what an earlier CPU manager policy left behind, with which
        a kubelet refuses to start.
        """
        config = self._release.kubelet_config({**configuration(self._runtime.cgroup_parent, self.static_pods), **more})
        self._config_file.write_text(json.dumps(config))
        (self._runtime.folder / "kubelet" / "cpu_manager_state").unlink(missing_ok=True)

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.end()

    def _keep_device_plugins(self) -> None:
        """Whatever its root folder is, a kubelet has the sockets of device plugins here."""
        DEVICE_PLUGINS.mkdir(parents=True, exist_ok=True)
        subprocess.run(self._runtime.beside("mount", "--bind", self.device_plugins, DEVICE_PLUGINS), check=True)

    def _hide_hugepages(self) -> None:
        """Where no controller of them is mounted: a kubelet limits what it finds in each container, and CRI-O goes by
        what the kernel could mount.
        """
        mounted = {path.name for path in hierarchies()}
        if HUGEPAGES.exists() and "cpuset" in mounted and "hugetlb" not in mounted:
            subprocess.run(self._runtime.beside("mount", "-t", "tmpfs", "tmpfs", HUGEPAGES), check=True)

    def _keep_sysctls(self) -> None:
        for path, value in KEPT.items():
            file = self._runtime.folder / path.replace("/", ".")
            file.write_text(value)
            if Path("/proc/sys", path).exists():
                subprocess.run(self._runtime.beside("mount", "--bind", file, f"/proc/sys/{path}"), check=True)


def configuration(cgroup_root: str = "", static_pods: Path | None = None) -> dict[str, object]:
    """A KubeletConfiguration: nothing is evicted, and the machine's firewall is left alone."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": free_port(),
        "healthzPort": 0,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "staticPodPath": str(static_pods or ""),
        "fileCheckFrequency": "1s",
        "enforceNodeAllocatable": ["pods"],
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        "oomScoreAdj": 0,
        "runtimeRequestTimeout": "15m",  # an emulated runtime is slow
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}, "x509": {}},
        "authorization": {"mode": "AlwaysAllow"},
    }


def has_address() -> bool:
    """Whether this machine has an address that a kubelet takes for its node's."""
    shown = subprocess.run(
        ["ip", "-o", "address", "show", "scope", "global"], capture_output=True, text=True, check=True
    )
    return bool(shown.stdout.strip())


def _usable(hierarchy: Path, folder: Path) -> None:
    """A new cpuset of cgroup v1 is empty, and takes no process."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file, above = folder / name, hierarchy / name
        if above.exists() and not file.read_text().strip():
            file.write_text(above.read_text())
