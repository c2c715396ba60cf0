"""Wrong uses of numakin-enforcer: each ends at once, with one line that says what to do."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.machines import MACHINES, write_sysfs
from tests.uses import Program

LONG = "x" * 120

RUN: dict[str, tuple[str, int, str]] = {
    "an unknown option": ("--nope", 2, "unrecognized arguments: --nope; see numakin-enforcer run --help"),
    "a value left out": ("--sysfs", 2, "argument --sysfs: expected one argument; see numakin-enforcer run --help"),
    "an unknown mode": ("--mode magic", 2, "mode: 'magic' is not allowed; allowed: nri, bypass"),
    "no number of NUMA nodes": (
        "--policy-options max-allowable-numa-nodes=inf",
        2,
        "policy-options: 'max-allowable-numa-nodes=inf' is not allowed; allowed: prefer-closest-numa-nodes, max-",
    ),
    "a number left out": (
        "--policy-options max-allowable-numa-nodes",
        2,
        "policy-options: 'max-allowable-numa-nodes' is",
    ),
    "a negative number": ("--policy-options max-exclusive-cpus-per-namespace=-1", 2, "policy-options: 'max-exclusive"),
    "an unknown policy option": ("--policy-options span=cache,full-pcpus-only", 2, "policy-options: 'span=cache,full-"),
    "a fraction": ("--move-budget 0.5", 2, "move-budget: 0.5 is not allowed; allowed: a whole number from 0 to 100"),
    "moves that are neither made nor planned": ("--moves off", 2, "moves: 'off' is not allowed; allowed: make, plan"),
    "hours that are none": (
        "--move-hours 22-6",
        2,
        "move-hours: '22-6' is not allowed; allowed: hours of the day in UTC, as 22:00-06:00, or nothing for always",
    ),
    "no end of moves": ("--move-budget inf", 2, "move-budget: inf is not allowed"),
    "a word for a number": ("--window-s soon", 2, "--window-s: 'soon' is not a number"),
    "no window": ("--window-s nan", 2, "window-s: nan is not allowed; allowed: 1 to 600 seconds"),
    "an endless window": ("--window-s inf", 2, "window-s: inf is not allowed; allowed: 1 to 600 seconds"),
    "more than all the time": ("--observe 2", 2, "observe: '2' is not allowed; allowed: a share of time"),
    "neither on nor off": ("--policy-options within-others=2", 2, "policy-options: 'within-others=2' is not allowed"),
    "an address without a port": (
        "--extender extender",
        2,
        "extender: 'extender' is not allowed; allowed: HOST:PORT, up to 5",
    ),
    "a port too high": (
        "--extender extender:99999",
        2,
        "extender: 'extender:99999' is not allowed; allowed: HOST:PORT",
    ),
    "a metrics port too high": (
        "--metrics-listen 127.0.0.1:70000",
        2,
        "metrics-listen: '127.0.0.1:70000' is not allowed",
    ),
    "two metrics ports": (
        "--metrics-listen a:1,b:2",
        2,
        "metrics-listen: 'a:1,b:2' is not allowed; allowed: HOST:PORT",
    ),
    "a certificate without a key": ("--extender-cert c", 2, "extender-cert and extender-key belong together"),
    "no list of CPUs": ("--reserved-cpus first", 2, "reserved-cpus: 'first' is not a list of ids"),
    "CPUs that no kernel has": (
        "--reserved-cpus 0-999999999",
        2,
        "reserved-cpus: '0-999999999' holds an id over 16383",
    ),
    "CPUs that are not there": ("--reserved-cpus 4000", 1, "reserved-cpus: CPUs 4000 are not online; online: "),
    "every CPU": ("--reserved-cpus 0-7", 1, "reserved-cpus: 0-7 is every CPU of the machine"),
    "a plugin index": ("--plugin-index first", 2, "plugin-index: 'first' is not allowed; allowed: two digits"),
    "a node name": ("--node-name Node_1", 2, "node-name: 'Node_1' is not allowed; allowed: a Kubernetes node's name"),
    "an NRI socket's path too long": (
        f"--nri-socket /{LONG}",
        2,
        "allowed: the path of a unix socket, at most 107 bytes",
    ),
    "no NRI socket": ("--nri-socket=", 2, "nri-socket: '' is not allowed; allowed: the path of a unix socket"),
    "a CRI socket": (
        "--mode bypass --cri-socket x",
        2,
        "cri-socket: 'x' is not allowed; allowed: the path of a unix socket",
    ),
    "a podresources socket": (
        "--podresources-socket x",
        2,
        "podresources-socket: 'x' is not allowed; allowed: off, or",
    ),
    "a podresources socket to serve": (
        "--podresources-listen kubelet.sock",
        2,
        "podresources-listen: 'kubelet.sock' is not allowed; allowed: off, or",
    ),
    "a run folder that is a file": (
        "--run-dir {folder}/junk",
        1,
        "{folder}/junk can't be used: {folder}/junk: File exists",
    ),
    "a run folder in a file": ("--run-dir {folder}/junk/run", 1, "name a folder that this user may write by --run-dir"),
    "a run folder in procfs": ("--run-dir /proc/numakin", 1, "run-dir /proc/numakin can't be used: "),
    "a run folder's path too long": (f"--run-dir /{LONG}", 2, "allowed: a folder's path, at most 97 bytes"),
    "a lock that is a FIFO": ("--run-dir {folder}/locked", 1, "{folder}/locked/lock: not a regular file"),
    "no sysfs": (
        "--sysfs /nowhere",
        1,
        "sysfs: /nowhere has no devices/system/cpu: name the folder where it is mounted",
    ),
    "a FIFO for sysfs": ("--sysfs {folder}/fifo", 1, "sysfs: {folder}/fifo has no devices/system/cpu"),
    "a FIFO in sysfs": (
        "--sysfs {folder}/holed",
        1,
        "{folder}/holed/devices/system/cpu/online: cannot be read: not a regular file",
    ),
    "a FIFO in a NUMA node": ("--sysfs {folder}/deep", 1, "node0/cpulist: cannot be read: not a regular file"),
    "no procfs": (
        "--procfs /nowhere",
        1,
        "procfs: /nowhere has no mounts: name the folder where it is mounted by --procfs",
    ),
    "a recording that is gone": (
        "--replay /nowhere",
        2,
        "replay: /nowhere is not a file: name one that `numakin-enforcer record`",
    ),
    "a recording that is a FIFO": ("--replay {folder}/fifo", 2, "replay: {folder}/fifo is not a file"),
    "options that are gone": ("--config /nowhere", 2, "config file /nowhere: No such file or directory"),
    "options in a folder": ("--config {folder}", 2, "config file {folder}: Is a directory"),
    "options in a FIFO": ("--config {folder}/fifo", 2, "config file {folder}/fifo: not a regular file"),
    "options that are not text": ("--config {folder}/binary", 2, "config file {folder}/binary: not text"),
    "options that are not TOML": ("--config {folder}/junk", 2, "{folder}/junk: not TOML: "),
    "options of another program": ("--config {folder}/other", 2, "{folder}/other: unknown key 'colour'; known: mode, "),
}

COMMANDS: dict[str, tuple[str, int, str]] = {
    "an unknown command": ("frobnicate", 2, "argument COMMAND: invalid choice: 'frobnicate'"),
    "nobody runs": (
        "status --run-dir /nowhere",
        1,
        "no enforcer answers at /nowhere/hook.sock: No such file or directory; is it",
    ),
    "a status path too long": (
        f"status --run-dir /{LONG}",
        1,
        "AF_UNIX path too long; is it running, with this --run-dir?",
    ),
    "nobody to release": (
        "release --run-dir {folder}/junk",
        1,
        "no enforcer answers at {folder}/junk/hook.sock: Not a directory",
    ),
    "nobody to resume": ("resume --run-dir /nowhere", 1, "no enforcer answers at /nowhere/hook.sock"),
    "nobody to watch": (
        "top --metrics 127.0.0.1:1",
        1,
        "Connection refused; is it running, with this --metrics-listen?",
    ),
    "no address to watch": ("top --metrics here", 1, "--metrics must be HOST:PORT, not 'here'"),
    "a port that is no number": ("top --metrics here:xx", 1, "--metrics must be HOST:PORT, not 'here:xx'"),
    "a recording into a folder": ("record {folder}", 1, "Is a directory: '{folder}'"),
    "a recording of no time": (
        "record --seconds nan x",
        2,
        "argument --seconds: 'nan' is not allowed; allowed: a number of seconds",
    ),
    "a recording of less": ("record --seconds -5 x", 2, "argument --seconds: '-5' is not allowed"),
    "a recording of a word": ("record --seconds soon x", 2, "argument --seconds: 'soon' is not allowed"),
    "a doctor's wrong option": (
        "doctor --policy-options max-allowable-numa-nodes=inf",
        2,
        "policy-options: 'max-allowable-numa-nodes=inf' is not allowed",
    ),
}


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with Program("enforcer.cli.main") as first:
        yield first


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wrong")
    (made / "locked").mkdir()
    for fifo in ("fifo", "locked/lock"):
        os.mkfifo(made / fifo)
    (made / "junk").write_text("junk")
    (made / "other").write_text("colour = 'red'\n")
    (made / "binary").write_bytes(bytes(range(128, 256)))
    return made


def refused(program: Program, status: int, *words: str) -> str:
    """The one line."""
    ended = program.use(*words)
    assert ended.status == status, ended.output
    assert len(ended.lines) == 1, ended.output
    return ended.lines[0]


@pytest.fixture(scope="module")
def machine(folder: Path) -> Path:
    """Eight CPUs; and two more of its kind with a FIFO in the place of a file."""
    for name, spoiled in (("sys", ""), ("holed", "cpu/online"), ("deep", "node/node0/cpulist")):
        write_sysfs(MACHINES["qemu-4n"], folder / name)
        if spoiled:
            path = folder / name / "devices/system" / spoiled
            path.unlink()
            os.mkfifo(path)
    return folder / "sys"


@pytest.mark.parametrize(("words", "status", "received"), RUN.values(), ids=RUN)
def test_a_wrong_option_gets_one_line(program, folder, machine, tmp_path, words, status, received):
    base = (
        "run",
        "--run-dir",
        str(tmp_path / "run"),
        "--nri-socket",
        str(tmp_path / "nri.sock"),
        "--metrics-listen=",
        "--sysfs",
        str(machine),
    )
    line = refused(program, status, *base, *(part.format(folder=folder) for part in words.split()))
    assert received.format(folder=folder) in line


@pytest.mark.parametrize(("words", "status", "received"), COMMANDS.values(), ids=COMMANDS)
def test_a_wrong_command_gets_one_line(program, folder, words, status, received):
    line = refused(program, status, *(part.format(folder=folder) for part in words.split()))
    assert line.startswith("numakin-enforcer: ")
    assert received.format(folder=folder) in line


def test_help_says_what_each_option_takes(program):
    text = program.use("run", "--help").output
    assert "--policy-options OPTIONS" in text
    assert "--observe SHARE|off" in text
