"""Real servers and real clients on cpusets of this machine."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from enforcer.cli import compare as command
from enforcer.machine.sysfs import read_machine
from lab.standins.machines import MACHINES, write_sysfs
from lab.standins.patience import PATIENCE_S, until
from numakin.compare import running
from numakin.compare.arms import AGAIN, ON_ONE_MACHINE, SPREAD, TOGETHER, UNPINNED, Arm
from numakin.compare.options import add_options
from numakin.compare.rounds import in_turn, result
from numakin.compare.running import Run, RunFailed, run
from numakin.compare.workloads import (
    WORKLOADS,
    BadFigures,
    Figures,
    Workload,
    figures_by,
    of_commands,
    redis_figures,
    wrk_figures,
)
from numakin.placement.model.cpuset import CpuSet
from tests.ended import ended
from tests.extender.running import machine

CPUS = sorted(os.sched_getaffinity(0))
TWO = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
ONE_OF = {
    name: pytest.mark.skipif(not all(map(shutil.which, entry.needs)), reason=f"{entry.needs[0]} is not installed")
    for name, entry in WORKLOADS.items()
}

ECHO = """
import socket, sys, time
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    ours, _ = listening.accept()
    with ours:
        while data := ours.recv(64): ours.sendall(data)
"""
PING = """
import socket, sys, time
end, count = time.monotonic() + float(sys.argv[2]), 0
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as ours:
    while not count or time.monotonic() < end:
        ours.sendall(b"x" * 64)
        ours.recv(64)
        count += 1
print(f"rate: {count / float(sys.argv[2])}; late: 1.5 ms")
"""


def pinging(server: Sequence[str] = (), client: Sequence[str] = ()) -> Workload:
    server = server or [sys.executable, "-c", ECHO, "{port}"]
    client = client or [sys.executable, "-c", PING, "{port}", "{seconds}"]
    return of_commands(server, client, r"rate: ([\d.]+)", r"late: ([\d.]+)")


BURN = "import threading; threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()"
BUSY = pinging(
    [sys.executable, "-c", f"{BURN}\n{ECHO}", "{port}"],
    [sys.executable, "-c", f"{BURN}\n{PING}", "{port}", "{seconds}"],
)
SPLIT = machine(2, cpus=1)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is given up because the machine is busy."""
    monkeypatch.setattr(running, "UP_WITHIN_S", PATIENCE_S)


def one(server: int, client: int, name: str = TOGETHER) -> Arm:
    return Arm(name, CpuSet.of((server,)), CpuSet.of((client,)))


@pytest.mark.parametrize("name", [pytest.param(name, marks=ONE_OF[name]) for name in WORKLOADS])
def test_each_workload_runs_and_tells_its_figures(name):
    done = run(read_machine(), WORKLOADS[name], one(CPUS[0], CPUS[-1]), 1)
    assert done.figures.throughput > 0
    assert done.figures.latency is not None


def test_your_own_commands_run_too():
    done = run(read_machine(), pinging(), one(CPUS[0], CPUS[-1]), 1)
    assert (done.figures.throughput > 0, done.figures.latency) == (True, 1.5)


def sampled(arm: Arm) -> Run | None:
    """None for a run that was over before anybody looked where it ran, as on a busy machine."""
    done = run(SPLIT, BUSY, arm, 1)
    return done if done.local is not None else None


@TWO
def test_both_ends_run_where_they_are_put_and_it_is_seen():
    """On CPUs that are really there, taken for two NUMA nodes."""
    apart = until(lambda: sampled(one(CPUS[0], CPUS[1])), "both ends are seen")
    together = until(lambda: sampled(one(CPUS[0], CPUS[0])), "both ends are seen")
    assert (apart.local, together.local) == (0.0, 1.0)
    assert together.remote_pages is not None


@TWO
def test_every_way_is_run_in_each_round_on_its_own_cpus():
    """The client's figure is the CPU that it was put on."""
    received = [sys.executable, "-c", "import os; print(f'rate: {1 + max(os.sched_getaffinity(0))}; late: 1')"]
    ways = [one(CPUS[0], CPUS[0]), *(one(CPUS[0], CPUS[1], name) for name in (SPREAD, UNPINNED, AGAIN))]
    rounds = tuple(in_turn(partial(run, SPLIT, pinging(client=received), seconds=1), ways, 6, 1, lambda *_: None))
    actual = result(rounds, ON_ONE_MACHINE)
    there = (1 + CPUS[0]) / (1 + CPUS[1])
    assert (actual.compared[0].ratio.value, actual.controls[0].ratio.value) == pytest.approx((there, 1))
    assert actual.conclusive
    assert {tuple(each) for each in rounds} != {tuple(rounds[0])}, "each round in another order"


@pytest.mark.parametrize(("changes", "why"), [
    ({"server": ["false"]}, "the server does not listen at port"),
    ({"server": ["sh", "-c", "echo no licence >&2; exit 1"]}, "no licence"),
    ({"client": ["sh", "-c", "echo out of luck; exit 3"]}, r"the client failed \(3\): out of luck"),
])  # fmt: skip
def test_who_fails_is_told_with_his_last_words(changes, why):
    with pytest.raises(RunFailed, match=why):
        run(read_machine(), pinging(**changes), one(CPUS[0], CPUS[0]), 1)


def sleeper(folder: Path) -> list[str]:
    """A shell that leaves a child, whose id it writes down, and prints what is no UTF-8."""
    script = f"sleep 3600 & echo $! >{folder}/child; printf '\\377 rate: 1; late: 1\\n'"
    return ["sh", "-c", script]


def child_ended(folder: Path) -> bool:
    """The sleeper's."""
    return ended((folder / "child").read_text().strip())


def test_nothing_that_a_server_has_started_outlives_the_run(tmp_path):
    server = [*sleeper(tmp_path)[:2], sleeper(tmp_path)[2] + f'; {sys.executable} -c "$0" {{port}}; true', ECHO]
    run(read_machine(), pinging(server), one(CPUS[0], CPUS[0]), 1)
    until(lambda: child_ended(tmp_path), "the server's child has ended")


def test_nothing_that_a_client_has_started_outlives_a_run_that_is_stopped(tmp_path, monkeypatch):
    def stop(_self: object) -> None:
        child = tmp_path / "child"
        if child.exists() and child.read_text().endswith("\n"):
            raise KeyboardInterrupt

    monkeypatch.setattr("numakin.compare.running._Sampler.sample", stop)
    with pytest.raises(KeyboardInterrupt):
        run(
            read_machine(),
            pinging(client=[*sleeper(tmp_path)[:2], sleeper(tmp_path)[2] + "; wait"]),
            one(CPUS[0], CPUS[0]),
            1,
        )
    until(lambda: child_ended(tmp_path), "the client's child has ended")


def test_a_child_that_another_thread_has_started_is_looked_at_too():
    """As most are of a program in Go, whose threads start what they are at."""
    child = ["sleep", "3600"]
    parent = f"import subprocess, threading; threading.Thread(target=subprocess.run, args=({child!r},)).start()"
    with subprocess.Popen([sys.executable, "-c", parent], start_new_session=True) as process:
        try:
            until(lambda: len([*running._family(process.pid)]) == 2, "both")
        finally:
            running.killed(process)


def test_processes_that_end_while_they_are_looked_at_cost_nothing():
    """As those that a shell starts for each command: the run failed, and the comparison ended early."""
    shell = ["sh", "-c", "while :; do /bin/true & /bin/true & /bin/true; done"]
    with subprocess.Popen(shell, start_new_session=True) as process:
        try:
            looks = [sum(1 for _ in running._threads(process.pid)) for _ in range(1000)]
        finally:
            running.killed(process)
    assert min(looks) > 0
    assert max(looks) > 1


def test_output_that_is_no_utf_8_is_read():
    client = ["printf", r"\377 rate: 7; late: 1\n"]
    assert run(read_machine(), pinging(client=client), one(CPUS[0], CPUS[0]), 1).figures.throughput == 7


CUT_OFF = """
import ctypes, mmap, os, tempfile
ctypes.CDLL(None).prctl(15, "обработчик".encode())
file = tempfile.NamedTemporaryFile(suffix=os.fsdecode(b"\\xff"))
file.write(bytes(4096))
file.flush()
mapped = mmap.mmap(file.fileno(), 4096)
mapped[0] = 1
"""
"""A thread's name of which the kernel keeps 15 bytes, half a letter the last; and a file whose name is no UTF-8."""


def test_names_of_threads_and_files_that_are_no_utf_8_are_read():
    server = [sys.executable, "-c", f"{CUT_OFF}{BURN}\n{ECHO}", "{port}"]
    workload = pinging(server, [sys.executable, "-c", f"{BURN}\n{PING}", "{port}", "{seconds}"])
    assert run(read_machine(), workload, one(CPUS[0], CPUS[-1]), 1).figures.throughput > 0


def test_who_stops_it_sees_no_traceback(tmp_path, monkeypatch, capsys):
    write_sysfs(MACHINES["xeon-8380"], tmp_path)
    monkeypatch.setattr("enforcer.cli.compare.os.sched_getaffinity", lambda _: range(160))
    monkeypatch.setattr("enforcer.cli.compare.run", stopped)
    words = ["--sysfs", str(tmp_path), "--server", "true", "--client", "true", "--throughput", "(x)"]
    parser = argparse.ArgumentParser()
    add_options(parser)
    assert command.compare(parser.parse_args(words), "numakin-enforcer") == 130
    assert capsys.readouterr().err == ""


def stopped(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_client_without_figures_is_told_so():
    with pytest.raises(BadFigures, match="holds nothing like"):
        run(read_machine(), pinging(client=["echo", "done"]), one(CPUS[0], CPUS[0]), 1)


@pytest.mark.parametrize(("text", "figures"), [
    ("    99%    1.20ms\nRequests/sec:  12345.67\n", Figures(12345.67, 1.2)),
    ("    99%  950.00us\nRequests/sec:  1.00\n", Figures(1.0, 0.95)),
])  # fmt: skip
def test_wrk_is_read_in_every_unit(text, figures):
    received = wrk_figures(text)
    assert (received.throughput, received.latency) == pytest.approx((figures.throughput, figures.latency))


@pytest.mark.parametrize("text", ["rate: nan", "rate: inf", "rate: -1", "rate: 1.2.3", "rate: 5; late: x", "rate: x"])
def test_what_is_no_number_to_compare_is_told_so(text):
    """Also an optional group of the user's expression that matched nothing."""
    with pytest.raises(BadFigures, match="is no number that can be compared"):
        figures_by(r"rate: ([-.\d]+|nan|inf)?", r"late: (\d+)?")(text)


@pytest.mark.parametrize("rate", ["nan", "inf", "-1"])
def test_redis_without_a_number_is_told_so(rate):
    with pytest.raises(BadFigures, match="throughput is no number that can be compared"):
        redis_figures(f'"GET","{rate}","0.2","0.1","0.2","0.3","0.45","1.0"\n')


@pytest.mark.parametrize(
    "text", ["", "Requests/sec: 1.2.3", "Requests/sec: 0.00", "Requests/sec: 5.0\nNon-2xx or 3xx responses: 7"]
)
def test_wrk_that_was_not_served_has_no_figures(text):
    with pytest.raises(BadFigures):
        wrk_figures(text)


def test_redis_is_read_from_its_table():
    text = '"test","rps","avg","min","p50","p95","p99","max"\n"GET","90000.5","0.2","0.1","0.2","0.3","0.45","1.0"\n'
    assert redis_figures(text) == Figures(90000.5, 0.45)
    with pytest.raises(BadFigures):
        redis_figures("Could not connect")


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "enforcer", "compare", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_a_machine_with_one_numa_node_is_told_that_there_is_nothing_to_compare(tmp_path):
    tree = tmp_path / "devices/system"
    for path, text in (
        ("cpu/online", "0-1"),
        ("node/online", "0"),
        ("node/node0/cpulist", "0-1"),
        ("node/node0/distance", "10"),
    ):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    (tree / "node/node0/meminfo").write_text("Node 0 MemTotal: 1048576 kB\n")
    done = compare("--sysfs", str(tmp_path), "--server", "true", "--client", "true", "--throughput", "(x)")
    assert done.returncode == 1, done.stderr
    assert "there is nothing to compare on this machine: CPUs 0-1 are all on one NUMA node" in done.stderr


WRONG = {
    "a workload that is none": (("--workload", "tea"), "invalid choice: 'tea'"),
    "no rounds": (("--rounds", "0"), "'0' is not allowed; allowed: a whole number, 1 to 1000"),
    "seconds that are no number": (("--seconds", "soon"), "'soon' is not allowed"),
    "a server alone": (("--server", "x"), "--client is missing"),
    "a latency alone": (("--latency", "(x)"), "--latency belongs to your own workload"),
    "a quote that is not closed": (
        ("--server", "'", "--client", "x", "--throughput", "(x)"),
        "--server: No closing quotation",
    ),
    "no expression": (("--server", "true", "--client", "true", "--throughput", "("), "no regular expression"),
    "an expression without a group": (
        ("--server", "true", "--client", "true", "--throughput", "x"),
        "must have one group",
    ),
    "a program that is not there": (
        ("--server", "nope", "--client", "true", "--throughput", "(x)"),
        "nope is not installed",
    ),
    "a machine that is not there": (
        ("--server", "true", "--client", "true", "--throughput", "(x)", "--sysfs", "/no"),
        "/no",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_wrong_use_costs_one_line(case):
    words, why = WRONG[case]
    done = compare(*words)
    assert done.returncode == 2, done.stderr
    assert why in done.stderr.splitlines()[-1]
