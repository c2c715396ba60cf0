"""`numakin-enforcer status`, `release` and `resume`: what people ask of the running enforcer."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table

from enforcer.cli import member_memory, members
from enforcer.local import control
from enforcer.machine.sysfs import PROCFS
from numakin.placement.state.yielded import Yielded
from numakin.terminal import console
from numakin.wire import local_pb2 as local

PATIENCE_S = 5.0
RELEASE_S = 120.0
"""A release is answered once the runtime has carried all of it out."""

GOES_ON = "it goes on: see `numakin-enforcer status`, or release again"

UNWRITTEN = "what containers were given can't be written down, so that a restart may not know them"

SILENT_S = 10.0
"""An observer that was silent for so long is reported."""


class NobodyAnswersError(RuntimeError):
    """No enforcer runs here, or it does not answer."""


class NotFinishedError(NobodyAnswersError):
    """It runs, and has not answered yet."""


def ask(run_dir: Path, role: str = "ask") -> dict[str, Any]:
    """The hook's answer; NobodyAnswersError when there is none, NotFinishedError when it takes too long."""
    path = run_dir / "hook.sock"
    patience_s = RELEASE_S if role == "release" else PATIENCE_S
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(patience_s)
            sock.connect(str(path))
            sock.sendall(control.framed(local.ToHook(who=local.Who(role=role))))
            buffer = bytearray()
            while data := sock.recv(1 << 18):
                buffer += data
                for body in control.taken(buffer):
                    message = local.FromHook.FromString(body)
                    if message.HasField("status"):
                        return _of_this_version(json.loads(message.status.json), path)
    except TimeoutError as error:
        raise NotFinishedError(f"the enforcer at {path} has not answered within {patience_s:.0f} s") from error
    except OSError as error:
        todo = "run as root" if isinstance(error, PermissionError) else "is it running, with this --run-dir?"
        why = f"{error.strerror or error}; {todo}"
        raise NobodyAnswersError(f"no enforcer answers at {path}: {why}") from error
    raise NobodyAnswersError(f"the enforcer at {path} closed the connection without an answer")


def _of_this_version(answer: dict[str, Any], path: Path) -> dict[str, Any]:
    """NobodyAnswersError where it lacks what this program tells of containers."""
    if any("state" not in container for container in answer.get("containers", ())):
        why = "is of an older version than this program: ask by its own `numakin-enforcer`, or restart it"
        raise NobodyAnswersError(f"the enforcer at {path} {why}")
    return answer


def answered(run_dir: Path, procfs: Path = PROCFS) -> dict[str, Any]:
    """The hook's answer with what this node's cgroups say of members' memory; NobodyAnswersError when there is none."""
    answer = ask(run_dir)
    answer["memory"] = member_memory.rows(answer["containers"], procfs)
    return answer


def status(run_dir: Path, *, as_json: bool, every: bool = False, procfs: Path = PROCFS) -> int:
    """every: each container, and not only those that are not well. procfs: under which it is told where cgroups are
    mounted.
    """
    try:
        answer = answered(run_dir, procfs)
    except NobodyAnswersError as error:
        print(f"numakin-enforcer: {error}", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps(answer, indent=2))
        return 0
    out = console()
    for part in _parts(answer, every=every):
        out.print(part, highlight=False, soft_wrap=isinstance(part, str))
    return 0


def release(run_dir: Path) -> int:
    """Gives every pinned container the whole machine back; 1 when some have not got it."""
    try:
        answer = ask(run_dir, "release")
    except NotFinishedError:
        print(f"numakin-enforcer: not finished within {RELEASE_S:.0f} s; {GOES_ON}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"numakin-enforcer: not waited for; {GOES_ON}", file=sys.stderr)
        raise
    except NobodyAnswersError as error:
        print(f"numakin-enforcer: {error}", file=sys.stderr)
        return 1
    print(f"released {answer['released']} containers; nothing is pinned until `numakin-enforcer resume`")
    for container in answer["failed"]:
        cpus = container["cpus"] or "unknown CPUs"
        print(f"NOT released: {container['name']} ({container['id'][:12]}) is on {cpus}", file=sys.stderr)
    if answer["error"]:
        print(f"numakin-enforcer: not carried out: {answer['error']}", file=sys.stderr)
    return 1 if answer["failed"] or answer["error"] else 0


def resume(run_dir: Path) -> int:
    """Ends a release."""
    try:
        ask(run_dir, "resume")
    except NobodyAnswersError as error:
        print(f"numakin-enforcer: {error}", file=sys.stderr)
        return 1
    print("resumed: containers are pinned again")
    return 0


def _parts(answer: dict[str, Any], *, every: bool) -> Iterator[str | Table]:
    """What is printed, the sums first."""
    containers = answer["containers"]
    yield _title(answer)
    yield members.sums(containers)
    yield from _why(answer)
    yield from member_memory.told(answer.get("memory", ()), every=every)
    if not containers:
        return
    yield members.by_group(containers)
    shown = containers if every else [row for row in containers if not members.well(row)]
    if shown:
        yield members.one_by_one(shown, None if every else "not well")
        yield from members.reasons(shown)
    if not every:
        yield f"{'what is not well is above' if shown else 'all are well'}; every container, with its reasons: --all"


def _title(answer: dict[str, Any]) -> str:
    registered = "registered with the runtime" if answer["registered"] else "NOT registered with the runtime"
    if answer["confirmed_seconds_ago"] is not None:
        registered += f" (confirmed {answer['confirmed_seconds_ago']:.0f} s ago)"
    if answer["released"]:
        registered += ", RELEASED: nothing is pinned until `numakin-enforcer resume`"
    return f"node {answer['node']}: {registered}, generation {answer['generation']}"


def _observer(health: dict[str, Any]) -> list[str]:
    seconds_ago = health.get("seconds_ago")
    if seconds_ago is None:
        return ["the observer has given no sign of life yet: nothing is learned or reported"]
    if seconds_ago > SILENT_S:
        return [f"the observer gave its last sign of life {seconds_ago:.0f} s ago: nothing is learned or reported"]
    degraded = f"the observer is degraded: {health['degraded']}" if health["degraded"] else ""
    return [line for line in (health.get("doing", ""), degraded) if line]


def _why(answer: dict[str, Any]) -> list[str]:
    """What holds of the node as a whole."""
    machine = answer.get("machine", {})
    about = [f"a fact about the machine is in doubt: {doubt}" for doubt in machine.get("doubts", ())]
    if answer.get("not_written_down"):
        about.insert(0, f"{UNWRITTEN}: {answer['not_written_down']}")
    if machine.get("isolated_cpus"):
        about.append(f"isolated CPUs, given to no member: {machine['isolated_cpus']}")
    if machine.get("withheld_mems"):
        about.append(f"NUMA nodes whose memory no member is bound to: {machine['withheld_mems']}")
    about += [f"namespace {name} may have at most: {quota}" for name, quota in answer.get("quotas", {}).items()]
    counted = {key: count for key, count in answer.get("yielded", {}).items() if key != "powerless"}
    if (yielded := Yielded(**counted)).containers:
        about.append(f"{yielded}" + (": the extender scores this node 0" if yielded.powerless else ""))
    about += [
        f"hot: CPUs {cpus} are nearly all in use while others are not; no newcomers, and members are let out"
        for cpus in answer.get("hot", ())
    ]
    about += [
        f"left to another NRI plugin that is asked after numakin and sets the cpuset too: {which}"
        for which in answer.get("conflicts", ())
    ]
    about += _observer(answer.get("observer", {}))
    about += [
        f"planned and not made: {move['pod']} from {move['source']} to {move['target']}: {move['why']}"
        for move in answer.get("planned_moves", ())
    ]
    return about
