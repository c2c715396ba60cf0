"""numakin as a plugin that the runtime requires (NRI's default validator): what becomes of pods while it is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from numakin.wire import cri_pb2 as cri
from tests.e2e.conftest import running
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import ForkedEnforcer
from tests.e2e.lab.runtime import PATIENT, TOLERATES, RealRuntime
from tests.e2e.lab.runtimes import Installation
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime

SMALL = cri.LinuxContainerResources(cpu_shares=51)  # 50 millicores


@pytest.fixture
def requiring(installation: Installation) -> Iterator[RealRuntime]:
    """Of every pod."""
    yield from validating(installation, "numakin")


@pytest.fixture
def asked(installation: Installation) -> Iterator[RealRuntime]:
    """Of the pods that ask for it alone."""
    yield from validating(installation)


def validating(installation: Installation, *required: str) -> Iterator[RealRuntime]:
    if not installation.has_validator:
        pytest.skip(f"{installation.title} has no default validator: CONTAINERD_BIN of 2.2 or newer does, or CRIO_BIN")
    yield from running(
        installation.runtime(registration_timeout=PATIENT, request_timeout=PATIENT, required_plugins=required)
    )


def run(runtime: RealRuntime, pod: str, **annotations: str) -> int:
    sandbox = runtime.kubelet.run_pod(pod, annotations=annotations)
    return runtime.kubelet.pid(runtime.kubelet.run(sandbox, resources=SMALL))


def test_while_it_is_away_no_container_starts_but_those_that_tolerate_it_and_then_all_do(
    requiring: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    group = {"group.numakin.io": "shop"}
    enforcer = ForkedEnforcer(tmp_path, requiring.nri_socket, "--sysfs", str(machine.sysfs))
    try:
        enforcer.start()
        member, plain = run(requiring, "cart", **group), run(requiring, "plain")
        home = kernel.cpuset(member)
        assert home.cpus in machine.halves
        assert kernel.allowed(plain).cpus == machine.whole
        enforcer.kill()
        for name, annotations in (("late", group), ("late-plain", {})):
            with pytest.raises(grpc.RpcError, match='required plugin "numakin" not present'):
                run(requiring, name, **annotations)
        assert kernel.allowed(run(requiring, "enforcer", **{TOLERATES: "true"})).cpus == machine.whole
        assert kernel.cpuset(member) == home, "what runs goes on"
        enforcer.start()
        assert kernel.cpuset(run(requiring, "checkout", **group)) == home
    finally:
        enforcer.stop()


def test_a_pod_that_asks_for_it_alone_waits_for_it_and_others_do_not(
    asked: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    annotations = {"group.numakin.io": "shop", "required-plugins.noderesource.dev": "[numakin]"}
    assert kernel.allowed(run(asked, "plain")).cpus == machine.whole
    with pytest.raises(grpc.RpcError, match='required plugin "numakin" not present'):
        run(asked, "cart", **annotations)
    enforcer = ForkedEnforcer(tmp_path, asked.nri_socket, "--sysfs", str(machine.sysfs))
    try:
        enforcer.start()
        assert kernel.cpuset(run(asked, "cart-again", **annotations)).cpus in machine.halves
    finally:
        enforcer.stop()
