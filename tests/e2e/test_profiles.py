"""The enforcer in a container of a real runtime, under the seccomp profile that is shipped, as in a cluster: it pins."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from enforcer.cli.status import NobodyAnswersError, ask
from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.idle import idle_procfs
from tests.e2e.lab.place import REPOSITORY
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.split_machine import SplitMachine
from tests.manifests.confined import PROFILES

pytestmark = pytest.mark.runtime

PATIENCE_S = 120.0


def profile(runtime: RealRuntime, name: str) -> Path:
    """Where this runtime finds it, as below the kubelet's folder."""
    return Path(shutil.copy(PROFILES / f"{name}.json", runtime.folder))


def status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def mounts(*folders: Path) -> dict[str, str]:
    """This machine's programs and libraries, the virtual environment and these folders, where they are here."""
    system = {f"/{name}": f"/host/usr/{name}" for name in ("lib", "lib64")} | {"/usr": "/host/usr"}
    ours = (sys.prefix, sys.base_prefix, *sys.path)
    packages = {Path(entry) for entry in ours if Path(entry).is_dir() and not f"{entry}/".startswith("/usr/")}
    return system | {str(folder): f"/host{folder}" for folder in sorted({REPOSITORY, *packages, *folders})}


def registered(run_dir: Path) -> bool:
    try:
        return bool(ask(run_dir).get("registered"))
    except NobodyAnswersError:
        return False


def test_a_runtime_takes_the_extenders_profile(runtime: RealRuntime) -> None:
    pod = runtime.kubelet.run_pod("extender")
    container = runtime.kubelet.create(pod, seccomp=profile(runtime, "numakin-extender"))
    runtime.kubelet.start(container)
    assert "Seccomp:\t2" in status(runtime.kubelet.pid(container))


def test_the_enforcer_pins_from_a_container_under_its_profile(
    runtime: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    command = [sys.executable, "-m", "enforcer", "run", "--nri-socket", str(runtime.nri_socket)]
    command += ["--run-dir", str(run_dir), "--node-name", "lab", "--metrics-listen", "", "--observe", "off"]
    command += ["--sysfs", str(machine.sysfs), "--procfs", str(idle_procfs(tmp_path))]
    shared = mounts(tmp_path, machine.sysfs) | {str(runtime.folder): str(runtime.folder)}
    container = runtime.kubelet.create(
        runtime.kubelet.run_pod("enforcer"),
        command=command,
        environment={"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])},
        mounts=shared,
        seccomp=profile(runtime, "numakin-enforcer"),
    )
    runtime.kubelet.start(container)
    until(lambda: registered(run_dir), "the enforcer to be registered with the runtime", PATIENCE_S)
    assert "Seccomp:\t2" in status(runtime.kubelet.pid(container))
    resources = cri.LinuxContainerResources(cpu_shares=51)
    member = runtime.kubelet.run_pod("cart", annotations={"group.numakin.io": "shop"})
    pid = runtime.kubelet.pid(runtime.kubelet.run(member, resources=resources))
    assert kernel.cpuset(pid).cpus in machine.halves
