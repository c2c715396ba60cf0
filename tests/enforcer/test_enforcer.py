"""The program itself, as real processes on a real unix socket, with a runtime at the other end that speaks NRI."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from enforcer import lock
from enforcer.config import Config
from placement.cpuset import CpuSet
from standins.machines import MACHINES, write_sysfs
from standins.runtime.runtime import Runtime

PATIENCE_S = 30.0
GROUP = {"group.numakin.io": "web"}


def until(done: Callable[[], object], what: str) -> None:
    """Polls a state that another process reaches by itself."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Enforcer:
    """`numakin-enforcer run` on a Xeon with two NUMA nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_dir = folder / "run"
        self.socket = folder / "nri.sock"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.metrics = f"127.0.0.1:{free.getsockname()[1]}"
        write_sysfs(MACHINES["xeon-8380"], folder / "sys")
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "enforcer.main", "run", "--nri-socket", str(self.socket)]
        command += ["--run-dir", str(self.run_dir), "--sysfs", str(self.folder / "sys"), "--node-name", "n1"]
        command += ["--metrics-listen", self.metrics, "--observe", "off", *more]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def status(self) -> dict:
        asked = subprocess.run(
            [sys.executable, "-m", "enforcer.main", "status", "--json", "--run-dir", str(self.run_dir)],
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(asked.stdout)

    def children(self) -> dict[str, int]:
        """The pids of the hook and the observer."""
        found = {}
        for pid in Path(f"/proc/{self.processes[-1].pid}/task/{self.processes[-1].pid}/children").read_text().split():
            line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found[line[2].decode().rpartition(".")[2] if len(line) > 2 else ""] = int(pid)
        return found

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self.metrics}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()
        except OSError:
            return 0, ""

    def close(self) -> None:
        for one in self.processes:
            if one.poll() is None:
                one.terminate()
            one.communicate(timeout=PATIENCE_S)


@pytest.fixture
def enforcer() -> Iterator[Enforcer]:
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        made = Enforcer(Path(folder))
        yield made
        made.close()


@pytest.fixture
def runtime(enforcer: Enforcer) -> Iterator[Runtime]:
    with Runtime(enforcer.socket) as made:
        yield made


def numa_cpus(enforcer: Enforcer) -> list[CpuSet]:
    return [
        CpuSet.parse((enforcer.folder / f"sys/devices/system/node/node{one}/cpulist").read_text()) for one in (0, 1)
    ]


def cpus(runtime: Runtime, container) -> CpuSet:
    return CpuSet.parse(runtime.containers[container.id].resources.cpu.cpus)


def test_members_are_pinned_together_and_others_are_not_touched(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    members = [
        runtime.run_container(runtime.run_pod(f"m{n}", annotations=GROUP), "app", cpu_request=2) for n in range(3)
    ]
    plain = runtime.run_container(runtime.run_pod("plain"), "app", cpu_request=2)
    assert {str(cpus(runtime, one)) for one in members} == {str(numa_cpus(enforcer)[0])}
    assert runtime.containers[plain.id].resources.cpu.cpus == ""
    assert runtime.containers[plain.id].annotations == {}


def test_it_says_what_is_pinned_where_and_why(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    runtime.run_container(runtime.run_pod("m", "shop", annotations=GROUP), "app", cpu_request=2)
    (one,) = enforcer.status()["containers"]
    assert (one["pod"], one["numa_nodes"]) == ("shop/m", "0")
    assert any("no kin here" in reason for reason in one["reasons"])


def test_what_was_decided_before_the_observer_was_there_is_counted_too(enforcer: Enforcer, runtime: Runtime) -> None:
    """It takes longer to start than the hook."""
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    counted = 'numakin_enforcer_decisions_total{event="create"} 1.0'
    until(lambda: counted in enforcer.get("/metrics")[1], "the decision is not counted")


def test_a_runtime_that_comes_later_or_restarts_is_joined(enforcer: Enforcer) -> None:
    enforcer.start()
    for _ in range(2):
        with Runtime(enforcer.socket) as runtime:
            runtime.wait_for_plugin(PATIENCE_S)
            made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
            assert cpus(runtime, made)


def test_killed_and_started_again_it_pins_what_it_missed_and_leaves_the_rest(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    first = enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    before = runtime.run_container(runtime.run_pod("before", annotations=GROUP), "app", cpu_request=2)
    first.kill()
    until(lambda: not runtime.plugins.names, "the plugin is gone with its supervisor")
    missed = runtime.run_container(runtime.run_pod("missed", annotations=GROUP), "app", cpu_request=2)
    assert not cpus(runtime, missed)
    pinned = cpus(runtime, before)
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: cpus(runtime, missed), "the missed container is pinned")
    assert cpus(runtime, missed) == cpus(runtime, before) == pinned


@pytest.mark.parametrize("victim", ["hook", "observer"])
def test_either_process_may_die_without_the_other(enforcer: Enforcer, runtime: Runtime, victim: str) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
    survivor = next(name for name in ("hook", "observer") if name != victim)
    before = enforcer.children()
    os.kill(before[victim], signal.SIGKILL)
    until(lambda: enforcer.children().get(victim, before[victim]) != before[victim], f"a new {victim}")
    assert enforcer.children()[survivor] == before[survivor]
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready again")
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    assert cpus(runtime, made)


def test_ready_means_registered_with_the_runtime(enforcer: Enforcer) -> None:
    enforcer.start()
    until(lambda: enforcer.get("/readyz")[0] == 503, "not ready without a runtime")
    assert enforcer.get("/readyz")[1] == "not registered with the container runtime\n"
    assert enforcer.get("/healthz") == (200, "ok\n")
    with Runtime(enforcer.socket) as runtime:
        runtime.wait_for_plugin(PATIENCE_S)
        until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
        assert "numakin_enforcer_registered 1.0" in enforcer.get("/metrics")[1]
    until(lambda: enforcer.get("/readyz")[0] == 503, "not ready any more")


def test_release_gives_every_container_the_whole_machine_back(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    said = subprocess.run(
        [sys.executable, "-m", "enforcer.main", "release", "--run-dir", str(enforcer.run_dir)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "released 1 containers; nothing more is pinned until the enforcer starts again\n"
    assert str(cpus(runtime, made)) == "0-159"
    later = runtime.run_container(runtime.run_pod("later", annotations=GROUP), "app", cpu_request=2)
    assert not cpus(runtime, later)


def test_a_second_enforcer_says_so_and_leaves(enforcer: Enforcer, runtime: Runtime) -> None:
    first = enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    second = enforcer.start()
    _, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 1
    assert f"another numakin-enforcer (pid {first.pid}) runs on this node" in said
    assert first.poll() is None


def test_it_ends_cleanly_on_sigterm(enforcer: Enforcer, runtime: Runtime) -> None:
    process = enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
    process.terminate()
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "left the runtime" in said
    assert "Traceback" not in said
    assert not (enforcer.run_dir / "hook.sock").exists()


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--reserved-cpus", "900"), 3, "reserved-cpus: CPUs 900 are not online; online: 0-159"),
        (("--heartbeat-s", "100"), 2, "heartbeat-s: 100.0 is not allowed; allowed: 0.1 to 60 seconds"),
        (("--config", "/nowhere"), 2, "config file /nowhere: "),
        (("--sysfs", "/nowhere"), 3, "/nowhere"),
    ],
)
def test_a_bad_option_is_said_and_ends_it(
    enforcer: Enforcer, options: tuple[str, ...], status: int, message: str
) -> None:
    process = enforcer.start(*options)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status
    assert message in said


class TestLaunchedByTheRuntime:
    """An executable NN-name in the plugin folder: file descriptor 3, three environment variables, a drop-in file."""

    @pytest.fixture
    def program(self, enforcer: Enforcer) -> Path:
        program = enforcer.folder / "10-numakin"
        program.write_text(f"#!{sys.executable}\nimport sys\nfrom enforcer.main import main\nsys.exit(main([]))\n")
        program.chmod(0o755)
        return program

    def test_it_takes_its_options_from_the_drop_in_file(self, enforcer: Enforcer, program: Path) -> None:
        drop_in = f'sysfs = "{enforcer.folder}/sys"\nmetrics-listen = "{enforcer.metrics}"\nnode-name = "n7"\nobserve = "off"\n'
        with Runtime() as runtime:
            runtime.launch(program, "10", "numakin", drop_in)
            made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
            assert cpus(runtime, made) == numa_cpus(enforcer)[0]
            until(lambda: enforcer.get("/readyz")[0] == 200, "ready")

    def test_containerd_1_7_which_would_not_start_without_it_gets_a_plugin_that_stands_by(self, program: Path) -> None:
        with Runtime(nri_version="0.6.1", version="1.7.24") as runtime:
            runtime.launch(program, "10", "numakin", "sysfss = '/sys'")
            made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
            assert not cpus(runtime, made)
            assert runtime.plugins.names == ["10-numakin"], runtime.plugins.notes

    def test_a_second_one_is_refused_by_name(self, enforcer: Enforcer, program: Path) -> None:
        """The lock's folder is the default one here, as for every launched plugin."""
        held = lock.acquire(Path(Config().run_dir))
        try:
            with Runtime() as runtime:
                runtime.launch(program, "10", "numakin", f'sysfs = "{enforcer.folder}/sys"')
                assert any("another numakin-enforcer" in note for note in runtime.plugins.notes), runtime.plugins.notes
        finally:
            os.close(held)

    def test_a_bad_drop_in_file_is_refused_by_name(self, program: Path) -> None:
        with Runtime() as runtime:
            runtime.launch(program, "10", "numakin", "sysfss = '/sys'")
            assert any("unknown key 'sysfss'" in note for note in runtime.plugins.notes), runtime.plugins.notes
