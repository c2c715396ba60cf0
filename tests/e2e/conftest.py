"""The lab as fixtures: real containerds, the enforcer beside them, and the emulated NUMA machine.

Where the lab can't be had, its tests are skipped and say so; with NUMAKIN_REQUIRE_LAB=1 they fail instead.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lab.cluster.binaries import Binaries, NoKubernetes, binaries
from lab.cluster.cluster import Cluster, Terms
from tests.cluster.conftest import ANY_ANSWER
from tests.e2e.guest import auto_group, bypass, chain, main_path, stages
from tests.e2e.lab import containerd, place, vm
from tests.e2e.lab.containerd import PATIENT, RealContainerd
from tests.e2e.lab.enforcer import RunningEnforcer
from tests.e2e.lab.kubelet import has_address
from tests.e2e.lab.node import SUITE
from tests.e2e.lab.split_machine import SplitMachine, split

IN_ONE_BOOT = (main_path, bypass, auto_group, chain)
"""Programs, in this order: the first changes the hardware, and back."""

PRINTED = pytest.StashKey[str]()
MOST_SHOWN = 16_000
"""Characters of what an emulated machine printed last."""


def absent(reason: str) -> None:
    """Ends the test for want of a lab."""
    if os.environ.get("NUMAKIN_REQUIRE_LAB") == "1":
        pytest.fail(f"NUMAKIN_REQUIRE_LAB=1, but the lab can't run: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session", params=sorted(containerd.SUITES, reverse=True))
def suite(request: pytest.FixtureRequest) -> str:
    """A Debian release whose containerd is there to be started."""
    name: str = request.param
    have_containerd(name)
    return name


def have_containerd(name: str) -> None:
    """Ends the test where that Debian release's containerd can't be had."""
    if reason := place.lacking(place.CONTAINERD_TOOLS):
        absent(f"a real containerd {reason}")
    try:
        containerd.root_folder(name)
    except subprocess.CalledProcessError:
        why = f"Debian {name}'s containerd ({containerd.SUITES[name]}) could not be had; see the messages above"
        # sid is a moving target, and now and then can't be installed for days.
        pytest.skip(why) if name == "sid" else absent(why)


def have_real_node() -> None:
    """Ends the test where this machine can't be a node of a cluster."""
    have_containerd(SUITE)
    if not has_address():
        absent("a real kubelet needs an address besides loopback's")


def running(made: RealContainerd) -> Iterator[RealContainerd]:
    """From its start to the end of whatever needs it."""
    try:
        made.start()
        yield made
    finally:
        made.destroy()


@pytest.fixture(scope="session")
def containerd_of_session(suite: str) -> Iterator[RealContainerd]:
    yield from running(RealContainerd(suite, registration_timeout=PATIENT, request_timeout=PATIENT))


@pytest.fixture
def impatient_runtime(suite: str) -> Iterator[RealContainerd]:
    """With NRI's own timeouts, for a test of what is late."""
    yield from running(RealContainerd(suite))


@pytest.fixture
def runtime(containerd_of_session: RealContainerd) -> Iterator[RealContainerd]:
    """A running containerd without pods; each test is run with each version."""
    yield containerd_of_session
    containerd_of_session.kubelet.end_all_pods()


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> SplitMachine:
    """This machine's CPUs as two NUMA nodes."""
    try:
        return split(tmp_path_factory.mktemp("sysfs"))
    except ValueError as error:
        absent(str(error))
        raise


@pytest.fixture
def enforcer(runtime: RealContainerd, machine: SplitMachine, tmp_path: Path) -> Iterator[RunningEnforcer]:
    """The enforcer, registered with `runtime`, on `machine`."""
    running = RunningEnforcer(tmp_path, runtime.nri_socket, "--sysfs", str(machine.sysfs))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def numavm(request: pytest.FixtureRequest) -> Callable[..., vm.Result]:
    """`vm.run`, the machine being built. What a boot printed is shown with the first failure that follows it."""
    if reason := place.lacking(place.numavm_tools(vm.ARCHITECTURE)):
        absent(f"the emulated NUMA machine {reason}")
    try:
        vm.build()
    except subprocess.CalledProcessError:
        absent("the emulated NUMA machine could not be built; see the messages above")

    def run(*given: Any, **named: Any) -> vm.Result:
        result = vm.run(*given, **named)
        request.session.stash[PRINTED] = result.output[-MOST_SHOWN:]
        return result

    return run


@pytest.fixture(scope="session")
def four_nodes(numavm: Callable[..., vm.Result], request: pytest.FixtureRequest) -> Callable[[ModuleType], vm.Result]:
    """What a program of tests/e2e/guest printed on a machine with four NUMA nodes with CPUs: those that this run's tests
    read (`GUEST` of their modules) run one after the other in one boot, which takes longer than most of them.
    """
    needed = {getattr(getattr(item, "module", None), "GUEST", None) for item in request.session.items}
    programs = [guest.__name__ for guest in IN_ONE_BOOT if guest in needed]
    topology = "cxl" if main_path in needed else "4n"
    booted = numavm(topology, ["python3", "-m", stages.__name__, *programs])
    ended = stages.outputs(booted.output)

    def of(guest: ModuleType) -> vm.Result:
        status, output = ended.get(guest.__name__, (booted.status or vm.BROKEN, booted.output))
        return vm.Result(status, output, booted.messages)

    return of


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    printed = item.session.stash.get(PRINTED, "")
    if printed and report.failed and "numavm" in getattr(item, "fixturenames", ()):
        report.sections.append(("The emulated machine printed", printed))
        item.session.stash[PRINTED] = ""
    return report


@pytest.fixture(scope="session")
def kubernetes() -> Binaries:
    """Of a real control plane."""
    try:
        return binaries()
    except NoKubernetes as none:
        absent(f"a real control plane: {none}")
        raise


def for_real_node(kubernetes: Binaries, *nodes: str, extenders: int = 1) -> Iterator[Cluster]:
    """A control plane with numakin installed, and no node yet but what the caller starts."""
    with Cluster(kubernetes, Terms({}, real=nodes, extenders=extenders, http_timeout=ANY_ANSWER)) as running:
        # Their programs run beside the cluster; there is no image of them to be pulled.
        running.kubectl("-n", "numakin", "delete", "daemonset/numakin-enforcer", "deployment/numakin-extender")
        yield running
        assert running.errors == []
