"""The enforcer as a plugin that a real runtime launches: NN-name, a socket as file descriptor 3, and a drop-in file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.cli.status import NobodyAnswersError, NotFinishedError, ask
from lab.standins.patience import until
from tests.e2e.lab import kernel
from tests.e2e.lab.idle import idle_procfs
from tests.e2e.lab.place import REPOSITORY
from tests.e2e.lab.runtime import PATIENT, RealRuntime
from tests.e2e.lab.runtimes import Installation
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime

# The runtime's own root has no Python: step out to this machine's tree. The runtime sets three variables, not even PATH.
PLUGIN = """\
#!/bin/sh
export NUMAKIN_RUN_DIR={run_dir}
exec 2>>{log_inside}
cd /host && exec /usr/sbin/chroot /host {python} -c '
import os, runpy, sys
os.chdir("{repository}"); sys.path.insert(0, "{repository}"); os.environ["PYTHONPATH"] = "{repository}"
sys.argv = ["numakin-enforcer"]
runpy.run_module("enforcer", run_name="__main__")'
"""


@pytest.fixture
def launching(installation: Installation, tmp_path: Path) -> Iterator[RealRuntime]:
    """A runtime, not started, that will launch the enforcer as 99-numakin."""
    runtime = installation.runtime(registration_timeout=PATIENT, request_timeout=PATIENT)
    plugin = runtime.plugins / "99-numakin"
    text = PLUGIN.format(
        run_dir=tmp_path / "run", log_inside=runtime.folder / "plugin.log", python=sys.executable, repository=REPOSITORY
    )
    plugin.write_text(text)
    plugin.chmod(0o755)
    try:
        yield runtime
    finally:
        runtime.destroy()


def configure(runtime: RealRuntime, name: str, **options: str) -> None:
    lines = (f"{key.replace('_', '-')} = {json.dumps(value)}\n" for key, value in options.items())
    (runtime.conf_d / name).write_text("".join(lines))


def run(runtime: RealRuntime, group: str) -> int:
    pod = runtime.kubelet.run_pod(f"pod-of-{group}", annotations={"group.numakin.io": group})
    return runtime.kubelet.pid(runtime.kubelet.run(pod))


def registered(run_dir: Path) -> bool:
    try:
        return bool(ask(run_dir)["registered"])
    except NobodyAnswersError:
        return False


def left(run_dir: Path) -> bool:
    """One that has not answered in time is still there."""
    try:
        return not ask(run_dir)["registered"]
    except NotFinishedError:
        return False
    except NobodyAnswersError:
        return True


@pytest.mark.parametrize("file_name", ["99-numakin.conf", "numakin.conf"])
def test_a_launched_enforcer_takes_its_options_from_the_runtimes_drop_in_file_and_pins(
    launching: RealRuntime, machine: SplitMachine, tmp_path: Path, file_name: str
) -> None:
    configure(
        launching,
        file_name,
        sysfs=str(machine.sysfs),
        procfs=str(idle_procfs(tmp_path)),
        node_name="from-the-file",
        metrics_listen="",
    )
    launching.start()
    until(lambda: registered(tmp_path / "run"), "the launched enforcer to be registered")
    shop, bank = run(launching, "shop"), run(launching, "bank")
    assert {kernel.cpuset(shop).cpus, kernel.cpuset(bank).cpus} == set(machine.halves)
    assert ask(tmp_path / "run")["node"] == "from-the-file"


def test_a_bad_drop_in_file_is_refused_by_name_and_containers_start_all_the_same(
    launching: RealRuntime, machine: SplitMachine
) -> None:
    configure(launching, "99-numakin.conf", sysfz=str(machine.sysfs))
    launching.start()
    assert kernel.allowed(run(launching, "shop")).cpus == machine.whole
    log = launching.folder / "plugin.log"
    until(lambda: "unknown key 'sysfz'" in log.read_text(), "the enforcer to name the unknown key")


def test_a_launched_enforcer_leaves_with_its_runtime(
    launching: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    configure(launching, "99-numakin.conf", sysfs=str(machine.sysfs), metrics_listen="")
    launching.start()
    until(lambda: registered(tmp_path / "run"), "the launched enforcer to be registered")
    shop = run(launching, "shop")
    launching.stop()
    until(lambda: left(tmp_path / "run"), "the launched enforcer to leave")
    launching.start()
    until(lambda: registered(tmp_path / "run"), "the runtime to launch another")
    assert kernel.cpuset(shop).cpus in machine.halves
