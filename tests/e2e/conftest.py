"""The lab as fixtures: real container runtimes, the enforcer beside them, and the emulated NUMA machine.

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
from tests.cluster.conftest import patient
from tests.e2e.guest import auto_group, bypass, chain, main_path, stages
from tests.e2e.lab import place, vm
from tests.e2e.lab.enforcer import ForkedEnforcer, RunningEnforcer
from tests.e2e.lab.kubelet import has_address
from tests.e2e.lab.runtime import PATIENT, RealRuntime
from tests.e2e.lab.runtimes import SID, Installation, installations
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


@pytest.fixture(scope="session", params=installations(), ids=lambda each: each.name)
def installation(request: pytest.FixtureRequest) -> Installation:
    """A runtime that is there to be started."""
    made: Installation = request.param
    have(made)
    return made


def have(installation: Installation) -> None:
    """Ends the test where that runtime can't be had."""
    if reason := place.lacking(place.RUNTIME_TOOLS):
        absent(f"a real container runtime {reason}")
    try:
        installation.root()
    except subprocess.CalledProcessError:
        why = f"{installation.name}, from Debian {installation.suite}, could not be had; see the messages above"
        pytest.skip(why) if installation is SID else absent(why)


@pytest.fixture(scope="module", params=installations(), ids=lambda each: each.name)
def for_kubelet(request: pytest.FixtureRequest, kubernetes: Binaries) -> Installation:
    """A runtime that this kubelet can be given."""
    made: Installation = request.param
    have_real_node(kubernetes, made)
    return made


def have_real_node(kubernetes: Binaries, installation: Installation) -> None:
    """Ends the test where this machine can't be a node of a cluster, or these two don't go together."""
    if not kubernetes.speaks_cri_v1 and not installation.serves_old_kubelets:
        pytest.skip(
            f"a kubelet 1.{kubernetes.minor} speaks CRI v1alpha2, which {installation.name} does not: "
            "KUBERNETES_BIN of 1.23 or newer does"
        )
    have(installation)
    if not has_address():
        absent("a real kubelet needs an address besides loopback's")


def running(made: RealRuntime) -> Iterator[RealRuntime]:
    """From its start to the end of whatever needs it."""
    try:
        made.start()
        yield made
    finally:
        made.destroy()


@pytest.fixture(scope="session")
def runtime_of_session(installation: Installation) -> Iterator[RealRuntime]:
    yield from running(installation.runtime(registration_timeout=PATIENT, request_timeout=PATIENT))


@pytest.fixture
def impatient_runtime(installation: Installation) -> Iterator[RealRuntime]:
    """With NRI's own timeouts, for a test of what is late."""
    yield from running(installation.runtime())


@pytest.fixture
def runtime(runtime_of_session: RealRuntime) -> Iterator[RealRuntime]:
    """A running runtime without pods; each test is run with each that there is."""
    yield runtime_of_session
    runtime_of_session.kubelet.end_all_pods()


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> SplitMachine:
    """This machine's CPUs as two NUMA nodes."""
    try:
        return split(tmp_path_factory.mktemp("sysfs"))
    except ValueError as error:
        absent(str(error))
        raise


@pytest.fixture
def enforcer(runtime: RealRuntime, machine: SplitMachine, tmp_path: Path) -> Iterator[RunningEnforcer]:
    """The enforcer, registered with `runtime`, on `machine`."""
    running = ForkedEnforcer(tmp_path, runtime.nri_socket, "--sysfs", str(machine.sysfs))
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
    read (`GUEST` of their modules) run one after the other in one boot, which takes longer than most of them. Those that had
    not ended when the emulated kernel panicked run in another one.
    """
    needed = {getattr(getattr(item, "module", None), "GUEST", None) for item in request.session.items}
    programs = [guest.__name__ for guest in IN_ONE_BOOT if guest in needed]
    topology = "cxl" if main_path in needed else "4n"
    results: dict[str, vm.Result] = {}
    for _ in range(vm.MOST_BOOTS):
        left = [name for name in programs if name not in results]
        booted = numavm(topology, ["python3", "-m", stages.__name__, *left], boots=1)
        for name, (status, output) in stages.outputs(booted.output).items():
            results[name] = vm.Result(status, output, booted.messages)
        if not booted.panicked:
            break
    not_ended = vm.Result(booted.status or vm.BROKEN, booted.output, booted.messages)
    return lambda guest: results.get(guest.__name__, not_ended)


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
    with Cluster(kubernetes, patient(Terms({}, real=nodes, extenders=extenders))) as running:
        # Their programs run beside the cluster; there is no image of them to be pulled.
        running.kubectl("-n", "numakin", "delete", "daemonset/numakin-enforcer", "deployment/numakin-extender")
        yield running
        assert running.errors == []
