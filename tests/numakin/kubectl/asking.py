"""The program as a person starts it: a process of its own, with its answer, its complaint and its exit code."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from tests import forked


@dataclass(frozen=True, slots=True)
class Told:
    """What a person sees."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def ask(*words: str, stdin: str | None = None, **environment: str) -> Told:
    """`kubectl numakin WORDS`, without a terminal and with nothing of this machine's Kubernetes."""
    clean = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    done = forked.run("kubectl-numakin", words, clean | {"HOME": "/nonexistent"} | environment, stdin or "")
    return Told(done.returncode, done.stdout, done.stderr)
