"""Cgroups, network namespaces and peers of the tests' own, taken down again whatever happens."""

import fcntl
import itertools
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from ipaddress import ip_interface
from pathlib import Path

from enforcer.observe.bpf.counters import FlowKey, address
from lab.standins.patience import PATIENCE_S

PEER = Path(__file__).parent / "traffic_peer.py"
_numbers = itertools.count()


def cgroup_root():
    """The mount point of cgroup v2, or None."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(mount)
    return None


def unique(name):
    return f"nk{os.getpid()}{name}{next(_numbers)}"


class Cgroup:
    def __init__(self, path):
        self.path = path
        self.id = path.stat().st_ino


class Lab:
    """What one test builds. `addresses[name]` of a namespace is its IPv4 address."""

    def __init__(self, stack):
        self._stack = stack
        self.root = Cgroup(self._make_cgroup(cgroup_root() / unique("lab")))

    def _make_cgroup(self, path):
        path.mkdir()
        self._stack.callback(path.rmdir)
        return path

    def cgroup(self, name):
        return Cgroup(self._make_cgroup(self.root.path / name))

    def namespace(self):
        name = unique("ns")
        run("ip", "netns", "add", name)
        self._stack.callback(run, "ip", "netns", "del", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        return name

    def veth(self, left, right, left_addresses, right_addresses):
        """One cable between two namespaces, with addresses such as 10.87.0.1/24 and fd87::1/64 at its ends."""
        a, b = unique("v"), unique("v")
        run("ip", "-n", left, "link", "add", a, "type", "veth", "peer", "name", b, "netns", right)
        for name, end, addresses in ((left, a, left_addresses), (right, b, right_addresses)):
            for prefix in addresses:
                nodad = ["nodad"] if ":" in prefix else []
                run("ip", "-n", name, "addr", "add", prefix, "dev", end, *nodad)
            run("ip", "-n", name, "link", "set", end, "up")
            never_again(name, end, addresses)
        return a, b

    def start(self, *command, cgroup=None, namespace=None):
        """A process inside `cgroup` and `namespace`, killed at the end of the test. Without a cgroup it is in the root."""
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        shell = [
            "sh",
            "-c",
            'echo $$ > "$0" && exec "$@"',
            str((cgroup.path if cgroup else cgroup_root()) / "cgroup.procs"),
            *inside,
            *command,
        ]
        process = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._stack.callback(end, process)
        return process

    def serve(self, kind, address, port, request, reply, *, cgroup=None, namespace=None):
        arguments = map(str, (kind, address, port, request, reply))
        process = self.start(sys.executable, "-SE", str(PEER), "serve", *arguments, cgroup=cgroup, namespace=namespace)
        assert process.stdout.readline() == "ready\n"
        return process

    def ask(self, kind, address, port, request, reply, count, *extra, cgroup=None, namespace=None):
        """Run a client to its end."""
        with self.asking(kind, address, port, request, reply, count, *extra, cgroup=cgroup, namespace=namespace):
            pass

    @contextmanager
    def asking(self, *arguments, cgroup=None, namespace=None):
        """A client that has had all its replies and keeps its connection open as long as the context."""
        command = [sys.executable, "-SE", str(PEER), "ask", *map(str, arguments)]
        process = self.start(*command, cgroup=cgroup, namespace=namespace)
        assert process.stdout.readline() == "answered\n"
        yield process
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


def end(process):
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def never_again(namespace, interface, addresses):
    """The cable loses nothing: what TCP would send again there is late only, as the machine is busy, and counts twice."""
    run("ip", "netns", "exec", namespace, "sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_early_retrans")
    for prefix in addresses:
        network = str(ip_interface(prefix).network)
        metric = ["metric", "256"] if ":" in prefix else []
        run("ip", "-n", namespace, "route", "replace", network, "dev", interface, *metric, "rto_min", "60s")


@contextmanager
def lab():
    """One at a time on a machine: its programs count what every process of the root cgroup sends, another run's too."""
    with ExitStack() as stack:
        alone = stack.enter_context((Path(tempfile.gettempdir()) / "numakin-observe-lab").open("wb"))
        fcntl.flock(alone, fcntl.LOCK_EX)
        yield Lab(stack)


def flows(snapshot, pods):
    """{(pod's name, peer's address, port, server, protocol): volume} of the cgroups of the test."""
    names = {pod["cgroup"].id: name for name, pod in pods.items()}
    return {
        (names[key.cgroup], str(address(key.peer)), key.port, key.server, key.protocol): volume
        for key, volume in snapshot.counters.items()
        if isinstance(key, FlowKey) and key.cgroup in names
    }
