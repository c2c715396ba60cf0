"""Processes with some of root's capabilities alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.manifests import powers
from tests.manifests.rendered import files, one

ROOT = Path(__file__).parents[2]
NUMBERS = {"NET_ADMIN": 12, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_RESOURCE": 24, "PERFMON": 38, "BPF": 39}
"""linux/capability.h."""


def asked(*command: str) -> subprocess.CompletedProcess[str]:
    """`powers`, run by this command."""
    # Most containers' processes are not root's.
    other = subprocess.Popen(["setpriv", "--reuid", "65534", "--clear-groups", "sleep", "600"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        program = [*command, sys.executable, "-m", "tests.manifests.powers", str(other.pid)]
        return subprocess.run(
            program, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500, check=False
        )
    finally:
        other.kill()
        other.wait()


def works(*command: str) -> dict[str, str]:
    """What `powers` says when it is run by this command."""
    answer = asked(*command)
    if answer.returncode:
        assert answer.stderr.strip() == powers.NO_CGROUP, answer.stderr
        pytest.skip(f"no BPF here: {powers.NO_CGROUP}")
    return dict(line.split(" ", 1) for line in answer.stdout.splitlines())


def only(capabilities: set[str]) -> list[str]:
    """Runs a command with root's identity, and these capabilities (as far as this machine has them) alone."""
    had = sorted(name for name in capabilities if bounding() >> NUMBERS[name] & 1)
    kept = ",".join(["-all", *(f"+{name.lower()}" for name in had)])
    return ["setpriv", "--bounding-set", kept, "--inh-caps", "-all", "--no-new-privs"]


def bounding() -> int:
    """The capabilities that processes here may have at all, as a mask."""
    return int(Path("/proc/self/status").read_text().split("CapBnd:")[1].split()[0], 16)


@pytest.fixture(scope="module")
def named() -> set[str]:
    spec = one(files(), "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]
    return set(spec["containers"][0]["securityContext"]["capabilities"]["add"])


@pytest.fixture(scope="module")
def as_root() -> dict[str, str]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    result = works()
    if result["cgroup_skb"] != "works":
        pytest.skip(f"the kernel refuses: {result['cgroup_skb']}")
    return result
