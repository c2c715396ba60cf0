"""Load BPF programs in a child process; get the descriptors of their maps and programs.

As they were built ahead, or where the kernel refuses those, compiled here by bcc, if there is one. Loading attaches
nothing: that is the parent's, by syscall.py, so that an attachment lives exactly as long as wanted.
"""

import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from enforcer.observe.bpf.built import HERE

ROOT = HERE.parents[2]
INTERPRETERS = tuple(dict.fromkeys((sys.executable, "/usr/bin/python3")))
"""Tried in order. bcc comes as a distribution's package, for the distribution's own interpreter."""

TIMEOUT_S = 300.0
"""A compilation takes under a second; an emulated CPU beside other work has needed more than a minute."""

FDS_MAX = 32
ANSWER_MAX = 1 << 16
STDERR_KEPT = 600

PYTHON_FAILED = 1
"""How an interpreter ends that an exception has ended."""

RUN = "import sys; sys.path.append({root!r}); from enforcer.observe.bpf.loader_child import main; main()"


class LoadRefused(Exception):
    """This kernel, or what is installed here, does not let the programs load or attach; the text says why."""


class LoadHopeless(LoadRefused):
    """However the programs were compiled: this process may load none, or the kernel lacks what they read."""


class LoaderFailed(LoadRefused):
    """The loader ended by an exception before it could ask the kernel: a fault of ours or of the installation's."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What to load.

    `sources` are files of this folder, compiled as one text; `programs` maps function names to 'cgroup_skb',
    'raw_tracepoint' or 'kprobe', and kernel functions that have a KRETFUNC_PROBE to 'tracing'; `offsets` are
    "struct.member" names, given to the program as OFFSET_struct_member. `defines` are numbers, of which what was built
    ahead takes any; `switches` decide what is compiled, and each set of them that are on has a build of its own.
    """

    name: str
    sources: Sequence[str]
    programs: Mapping[str, str]
    maps: Sequence[str]
    offsets: Sequence[str] = ()
    defines: Mapping[str, int] = field(default_factory=dict)
    switches: Mapping[str, int] = field(default_factory=dict)

    @property
    def paths(self) -> list[Path]:
        return [HERE / name for name in self.sources]

    def build(self, machine: str) -> str:
        """Names what is built of it for a machine as `uname -m` has it. Only kprobes differ, which read registers."""
        switched_on = [name.lower() for name, value in self.switches.items() if value]
        return "-".join([self.name, *switched_on, *([machine] if "kprobe" in self.programs.values() else [])])

    def as_json(self, *, compiled: bool) -> str:
        return json.dumps(
            {
                "compile": compiled,
                "build": self.build(platform.machine()),
                "sources": [str(path) for path in self.paths],
                "programs": dict(self.programs),
                "maps": list(self.maps),
                "offsets": list(self.offsets),
                "defines": dict(self.defines),
                "switches": dict(self.switches),
            }
        )


@dataclass(frozen=True, slots=True)
class LoadedPrograms:
    """Open descriptors, by name. They are the holder's to close. `how`: in words, and why in no better way."""

    maps: Mapping[str, int]
    programs: Mapping[str, int]
    how: str = ""

    def close(self) -> None:
        for descriptor in (*self.maps.values(), *self.programs.values()):
            os.close(descriptor)


BUILT_AHEAD = "built ahead"


def built_ahead(request: LoadRequest) -> LoadedPrograms:
    """Refused if nothing fits this machine, or the kernel says no."""
    return _loaded(request, BUILT_AHEAD, *_ask(sys.executable, request, compiled=False))


def by_bcc(request: LoadRequest, interpreters: Sequence[str] = INTERPRETERS) -> LoadedPrograms:
    """By the first interpreter that has bcc. Refused if none has, or the compiler or the kernel says no."""
    absences = []
    for python in interpreters:
        answer, descriptors = _ask(python, request, compiled=True)
        if "absent" not in answer:
            return _loaded(request, "compiled here by bcc", answer, descriptors)
        absences.append(f"{python}: {answer['absent']}")
    raise LoadRefused("no interpreter has bcc (" + "; ".join(absences) + ")")


Way: TypeAlias = Callable[[LoadRequest], LoadedPrograms]
WAYS: tuple[Way, ...] = (built_ahead, by_bcc)
"""Best first."""


def load(request: LoadRequest) -> LoadedPrograms:
    """Load by the first way that works. Refused, with the reasons of each, if none does."""
    reasons: list[str] = []
    for way in WAYS:
        try:
            loaded = way(request)
        except (LoadHopeless, LoaderFailed):
            raise
        except LoadRefused as error:
            reasons.append(str(error))
        else:
            return replace(loaded, how=f"{loaded.how}, since: {'; '.join(reasons)}") if reasons else loaded
    raise LoadRefused("; ".join(reasons))


def _loaded(request: LoadRequest, how: str, answer: Mapping[str, str], descriptors: Sequence[int]) -> LoadedPrograms:
    if "failure" in answer:
        raise LoaderFailed(f"the loader failed: {answer['failure']}")
    if "hopeless" in answer:
        raise LoadHopeless(answer["hopeless"])
    if "absent" in answer:
        raise LoadRefused(answer["absent"])
    if "error" in answer:
        raise LoadRefused(answer["error"])
    maps = len(request.maps)
    return LoadedPrograms(
        dict(zip(request.maps, descriptors[:maps], strict=True)),
        dict(zip(request.programs, descriptors[maps:], strict=True)),
        how,
    )


def _ask(python: str, request: LoadRequest, *, compiled: bool) -> tuple[dict[str, str], list[int]]:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            description = request.as_json(compiled=compiled)
            try:
                child = subprocess.run(
                    [python, "-c", RUN.format(root=str(ROOT)), description, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=TIMEOUT_S,
                    check=False,
                )
            except OSError as error:
                return {"absent": str(error)}, []
            except subprocess.TimeoutExpired:
                return {"error": f"the loader gave no answer in {TIMEOUT_S:.0f} s"}, []
        # The answer waits in the socket, with its descriptors, after the child is gone.
        text, descriptors, _, _ = socket.recv_fds(ours, ANSWER_MAX, FDS_MAX)
    printed = child.stdout.decode(errors="replace").strip()[-STDERR_KEPT:]
    if not text and child.returncode == PYTHON_FAILED:
        return {"failure": printed}, []
    answer = json.loads(text) if text else {"error": f"the loader exited with {child.returncode}"}
    if "error" in answer and compiled:
        # bcc says "Need super-user privileges" to every EPERM; what libbpf and the verifier print is truer.
        answer["error"] = printed or answer["error"]
    return answer, descriptors
