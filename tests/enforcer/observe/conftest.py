import os
import subprocess

import pytest

from enforcer.observe.bpf import loader
from enforcer.observe.bpf.loader import INTERPRETERS, LoaderFailed, LoadRefused
from enforcer.observe.collectors import cgroup_skb
from tests.enforcer.observe import observe_lab


def refused(error):
    """Skips by what the kernel says; a loader that never asked it is a failure."""
    if isinstance(error, LoaderFailed):
        raise error
    pytest.skip(f"the kernel refuses: {error}")


@pytest.fixture(scope="session")
def bpf_allowed():
    """Skips with the kernel's own words where BPF programs can't be loaded and attached."""
    root = observe_lab.cgroup_root()
    if os.geteuid() != 0 or root is None:
        pytest.skip("needs root and cgroup v2")
    try:
        collector = cgroup_skb.open_collector(root, edges=64)
        collector.attach()
        collector.close()
    except (LoadRefused, OSError) as error:
        refused(error)


@pytest.fixture(scope="session")
def bcc():
    """Skips where no interpreter has bcc."""
    done = [subprocess.run([python, "-c", "import bcc"], capture_output=True, check=False) for python in INTERPRETERS]
    if all(process.returncode for process in done):
        pytest.skip("no interpreter has bcc")


@pytest.fixture(
    params=[
        pytest.param(loader.built_ahead, id="built"),
        pytest.param(loader.by_bcc, id="bcc", marks=pytest.mark.thorough),
    ]
)
def way(request, monkeypatch):
    """Programs are loaded in this way alone: a test that uses it is run once for each. Compiling anew takes longest."""
    if request.param is loader.by_bcc:
        request.getfixturevalue("bcc")
    monkeypatch.setattr(loader, "WAYS", (request.param,))
    return request.param


@pytest.fixture
def lab(bpf_allowed):
    with observe_lab.lab() as built:
        yield built


@pytest.fixture
def allowed():
    """Opens and attaches a collector, or skips with the kernel's own words."""

    def open_attached(open_collector, *arguments):
        try:
            collector = open_collector(*arguments)
        except LoadRefused as error:
            refused(error)
        try:
            collector.attach()
        except OSError as error:
            collector.close()
            refused(error)
        return collector

    return open_attached


@pytest.fixture
def pods(lab):
    """Two pods on one wire: the cgroup and namespace of client and server."""
    client, server = lab.namespace(), lab.namespace()
    lab.veth(client, server, ["10.87.0.1/24", "fd87::1/64"], ["10.87.0.2/24", "fd87::2/64"])
    return {
        "client": {"cgroup": lab.cgroup("client"), "namespace": client},
        "server": {"cgroup": lab.cgroup("server"), "namespace": server},
    }
