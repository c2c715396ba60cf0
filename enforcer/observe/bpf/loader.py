"""Compile and load BPF programs in a child process; get the descriptors of their maps and programs.

Loading attaches nothing: that is the parent's, by bpf.py, so that an attachment lives exactly as long as wanted.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
SHIM = HERE / "shim"
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


class LoaderFailed(LoadRefused):
    """The loader ended by an exception before it could ask the kernel: a fault of ours or of the installation's."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What to load.

    `sources` are files of this folder, compiled as one text; `programs` maps function names to 'cgroup_skb',
    'raw_tracepoint' or 'kprobe', and kernel functions that have a KRETFUNC_PROBE to 'tracing'; `offsets` are
    "struct.member" names, given to the program as OFFSET_struct_member.
    """

    sources: Sequence[str]
    programs: Mapping[str, str]
    maps: Sequence[str]
    offsets: Sequence[str] = ()
    defines: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> str:
        return json.dumps(
            {
                "sources": [str(HERE / name) for name in self.sources],
                "programs": dict(self.programs),
                "maps": list(self.maps),
                "offsets": list(self.offsets),
                "defines": dict(self.defines),
                "shim": str(SHIM),
            }
        )


@dataclass(frozen=True, slots=True)
class LoadedPrograms:
    """Open descriptors, by name. They are the holder's to close."""

    maps: Mapping[str, int]
    programs: Mapping[str, int]

    def close(self) -> None:
        for descriptor in (*self.maps.values(), *self.programs.values()):
            os.close(descriptor)


def load(request: LoadRequest, interpreters: Sequence[str] = INTERPRETERS) -> LoadedPrograms:
    """Load by the first interpreter that has bcc. Refused if none has, or the compiler or the kernel says no."""
    absences = []
    for python in interpreters:
        answer, descriptors = _ask(python, request)
        if "absent" in answer:
            absences.append(f"{python}: {answer['absent']}")
            continue
        if "failure" in answer:
            raise LoaderFailed(f"the loader failed: {answer['failure']}")
        if "error" in answer:
            raise LoadRefused(answer["error"])
        maps = len(request.maps)
        return LoadedPrograms(
            dict(zip(request.maps, descriptors[:maps], strict=True)),
            dict(zip(request.programs, descriptors[maps:], strict=True)),
        )
    raise LoadRefused("no interpreter has bcc (" + "; ".join(absences) + ")")


def _ask(python: str, request: LoadRequest) -> tuple[dict[str, str], list[int]]:
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as stderr:
        with theirs:
            command = [python, "-c", RUN.format(root=str(ROOT)), request.as_json(), str(theirs.fileno())]
            try:
                child = subprocess.Popen(
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr
                )
            except OSError as error:
                return {"absent": str(error)}, []
        ours.settimeout(TIMEOUT_S)
        try:
            text, descriptors, _, _ = socket.recv_fds(ours, ANSWER_MAX, FDS_MAX)
        except TimeoutError:
            child.kill()
            text, descriptors = json.dumps({"error": f"the loader gave no answer in {TIMEOUT_S:.0f} s"}).encode(), []
        child.wait()
        stderr.seek(0)
        printed = stderr.read().decode(errors="replace").strip()[-STDERR_KEPT:]
        if not text and child.returncode == PYTHON_FAILED:
            return {"failure": printed}, []
        answer = json.loads(text) if text else {"error": f"the loader exited with {child.returncode}"}
        if "error" in answer:
            # bcc says "Need super-user privileges" to every EPERM; what libbpf and the verifier print is truer.
            answer["error"] = printed or answer["error"]
        return answer, descriptors
