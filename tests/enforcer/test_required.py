"""A runtime that requires NRI plugins to be there (the default validator of NRI 0.10): the program itself, and a runtime
that speaks NRI.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from enforcer.nri.handlers import Handlers
from lab.standins.patience import PATIENCE_S
from lab.standins.runtime import CriError, Runtime
from tests.enforcer.nri.running import Running
from tests.enforcer.running import GROUP, Enforcer, cpus, numa_cpus

OWN = GROUP | {"cpus.numakin.io": "exclusive"}


def requiring(enforcer: Enforcer, *names: str) -> Iterator[Runtime]:
    with Runtime(enforcer.socket, nri_version="0.12.0", required_plugins=names) as made:
        yield made


@pytest.fixture
def runtime(enforcer: Enforcer) -> Iterator[Runtime]:
    yield from requiring(enforcer, "numakin")


@pytest.fixture
def strict(enforcer: Enforcer) -> Iterator[Runtime]:
    yield from requiring(enforcer, "auditor")


def test_while_numakin_is_required_and_away_no_container_starts_and_then_members_are_pinned(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    pod = runtime.run_pod("web", annotations=GROUP)
    with pytest.raises(CriError, match="required plugin numakin not present"):
        runtime.run_container(pod, "app", cpu_request=2)
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    assert cpus(runtime, runtime.run_container(pod, "app", cpu_request=2)) in numa_cpus(enforcer)


def test_creations_that_another_plugin_s_absence_fails_cost_no_exclusive_cpus(
    enforcer: Enforcer, strict: Runtime
) -> None:
    """We are asked first, and the validator rejects what we have answered; the kubelet tries again and again."""
    enforcer.start()
    strict.wait_for_plugin(PATIENCE_S)
    pod = strict.run_pod("db", annotations=OWN)
    for _ in range(5):
        with pytest.raises(CriError, match="auditor not present"):
            strict.run_container(pod, "app", cpu_request=30)
    with Running(enforcer.socket, Handlers(), index="50", name="auditor"):
        strict.wait_for_plugin(PATIENCE_S)
        placed = [
            strict.run_container(strict.run_pod(f"db-{number}", annotations=OWN), "app", cpu_request=30)
            for number in range(4)
        ]
    sets = [cpus(strict, container) for container in placed]
    assert [len(own) for own in sets] == [30] * 4
    assert len(sets[0] | sets[1] | sets[2] | sets[3]) == 120
