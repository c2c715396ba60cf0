"""Both programs do their work under the profiles that are shipped, and what those forbid can't be done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.standins.patience import until
from tests.attack.operated import Site
from tests.enforcer.running import numa_cpus
from tests.manifests.capabilities import asked, only
from tests.manifests.confined import LAUNCHER, PROFILES, interpreter
from tests.manifests.rendered import MANIFESTS, one, rendered

SECCOMP = sorted(PROFILES.glob("*.json"))
APPARMOR = sorted((MANIFESTS / "profiles" / "apparmor").iterdir())
CONTEXTS = {"enforcer": ("DaemonSet", "numakin-enforcer"), "extender": ("Deployment", "numakin-extender")}
GROUP = {"group.numakin.io": "shop"}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "executable", str(interpreter(Path(folder))))
            made = Site(Path(folder))
        yield made
        made.close()


def confined(pid: int) -> bool:
    """Whether the kernel filters all of its threads' calls."""
    statuses = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return bool(statuses) and all("Seccomp:\t2" in status for status in statuses)


def test_members_are_placed_together_and_reported_and_every_process_is_confined(site):
    together = [site.run(name, "default", GROUP, 2) for name in ("cart", "search")]
    assert any(set(together) == {cpus} for cpus in numa_cpus(site.enforcer))
    until(lambda: "search" in json.dumps(site.extender.get("/api/v1/groups")), "the extender shows the members")
    pids = [site.enforcer.processes[-1].pid, *site.enforcer.children().values(), site.extender.program.pid]
    assert len(pids) == 4
    assert [pid for pid in pids if not confined(pid)] == []


def test_a_hook_that_was_killed_comes_back_under_the_profile_and_knows_its_work(site):
    before = site.run("mail", "default", GROUP, 2)
    site.enforcer.kill_hook()
    until(site.enforcer.joined, "another hook has joined")
    assert confined(site.enforcer.children()["hook"])
    assert "mail" in json.dumps(site.enforcer.status())
    assert site.run("web", "default", GROUP, 2) == before


@pytest.mark.bpf
def test_the_collectors_see_as_much_as_without_it(named, as_root):
    answer = asked(*only(named), sys.executable, str(LAUNCHER), str(PROFILES / "numakin-enforcer.json"))
    assert answer.returncode == 0, answer.stderr
    assert dict(line.split(" ", 1) for line in answer.stdout.splitlines()) == as_root


READS_SOCKETS = """
import sys
from pathlib import Path
from enforcer.observe.collectors.inet_diag import open_collector
collector = open_collector(lambda: [Path(sys.argv[1])])
collector.attach()
print(len(collector._sockets))
"""


@pytest.fixture
def other_network() -> Iterator[Path]:
    """The network namespace of another process."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with subprocess.Popen(["unshare", "--net", "sleep", "600"]) as process:
        path, own = Path(f"/proc/{process.pid}/ns/net"), Path("/proc/self/ns/net").readlink()
        until(lambda: path.readlink() != own, "it has a network namespace of its own")
        yield path
        process.kill()


@pytest.mark.parametrize(("added", "answer"), [({"SYS_ADMIN"}, "2\n"), (set(), "")], ids=["SYS_ADMIN", "as shipped"])
def test_sockets_are_read_in_the_pods_networks_where_the_pod_has_the_power_for_it(named, other_network, added, answer):
    """Under the profile as without it."""
    profile = [sys.executable, str(LAUNCHER), str(PROFILES / "numakin-enforcer.json")]
    for confined_by in ([], profile):
        command = [*only(named | added), *confined_by, sys.executable, "-c", READS_SOCKETS, str(other_network)]
        done = subprocess.run(command, cwd=MANIFESTS.parent, capture_output=True, text=True, check=False)
        assert done.stdout == answer, done.stderr
        assert answer or "setns: Operation not permitted" in done.stderr


CALLS = "import ctypes, os, socket; call = ctypes.CDLL(None, use_errno=True)"
FORBIDDEN = {
    "to hold another process": "call.ptrace(16, os.getppid(), 0, 0)",
    "to read another process's memory": "call.process_vm_readv(os.getppid(), 0, 0, 0, 0, 0)",
    "to mount": "call.mount(b'none', b'/nonexistent', b'tmpfs', 0, 0)",
    "to make a user namespace": "call.unshare(0x10000000)",
    "to enter another mount namespace": "call.setns(os.open('/proc/self/ns/mnt', 0), 0x20000)",
    "to enter a namespace of any kind": "call.setns(os.open('/proc/self/ns/net', 0), 0)",
    "to sniff packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "to reach the hypervisor": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    "to load a kernel module": "call.init_module(0, 0, b'')",
    "to set the clock": "call.clock_settime(99, (ctypes.c_long * 2)())",
    "to change its root": "os.chroot('/')",
    "to leave a link": "os.symlink('/etc/shadow', '/nonexistent/link')",
}


@pytest.mark.parametrize("profile", SECCOMP, ids=lambda path: path.stem)
@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_no_part_of_either_program_needs_is_forbidden(profile, what):
    done = subprocess.run(
        [sys.executable, LAUNCHER, profile, sys.executable, "-c", f"{CALLS}; {FORBIDDEN[what]}"], check=False
    )
    assert done.returncode == -signal.SIGSYS


def test_the_extender_can_load_no_bpf_program():
    load = "from enforcer.observe.bpf.syscall import Command, call; call(Command.MAP_LOOKUP_ELEM, bytes(72))"
    command = [sys.executable, LAUNCHER, PROFILES / "numakin-extender.json", sys.executable, "-c", load]
    assert subprocess.run(command, cwd=MANIFESTS.parent, check=False).returncode == -signal.SIGSYS


def profiles(overlay: str, program: str) -> tuple[Any, Any]:
    """The seccomp and the AppArmor profile of its container."""
    spec = one(rendered(overlay), *CONTEXTS[program])["spec"]["template"]["spec"]
    context = spec.get("securityContext", {}) | spec["containers"][0]["securityContext"]
    return context.get("seccompProfile"), context.get("appArmorProfile")


@pytest.mark.parametrize("program", CONTEXTS)
def test_the_overlays_name_the_files_that_are_shipped_and_the_base_needs_none(program):
    seccomp = {"type": "Localhost", "localhostProfile": f"numakin/numakin-{program}.json"}
    apparmor = {"type": "Localhost", "localhostProfile": f"numakin-{program}"}
    without = profiles("base", program)
    assert without[0] == {"type": "RuntimeDefault"}
    assert profiles("overlays/confined", program) == (seccomp, without[1])
    assert profiles("overlays/confined-apparmor", program) == (seccomp, apparmor)
    assert f"numakin-{program}.json" in {path.name for path in SECCOMP}
    assert f"profile numakin-{program} " in (MANIFESTS / "profiles/apparmor" / f"numakin-{program}").read_text()


@pytest.mark.parametrize("profile", APPARMOR, ids=lambda path: path.name)
def test_apparmor_takes_the_profiles(profile):
    parser = shutil.which("apparmor_parser", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if parser is None:
        pytest.skip("needs Debian's package apparmor")
    command = [parser, "--skip-kernel-load", "--skip-cache", "--skip-read-cache", profile]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
