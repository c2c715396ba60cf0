"""CPUs go offline and come back under the real program: by a written sysfs, over the runtime's and the extender's own
protocols.
"""

import json
import urllib.request
from collections.abc import Iterator

import pytest

from lab.standins.extender import ExtenderProcess
from lab.standins.machines import MACHINES, switch_cpus, write_sysfs
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.placement.model.cpuset import CpuSet
from tests.enforcer.running import GROUP, Enforcer, cpus, numa_cpus

OWN = GROUP | {"cpus.numakin.io": "exclusive"}

SMT_OFF = CpuSet.parse("0-79")
ALL = CpuSet.parse("0-159")


@pytest.fixture
def machine(enforcer: Enforcer) -> Enforcer:
    """On a sysfs of its own."""
    enforcer.sysfs = enforcer.folder / "sys"
    write_sysfs(MACHINES["xeon-8380"], enforcer.sysfs)
    return enforcer


@pytest.fixture
def extender(machine: Enforcer) -> Iterator[ExtenderProcess]:
    made = ExtenderProcess(machine.folder, ("--no-kube",))
    made.start()
    yield made
    made.kill()


def seen(extender: ExtenderProcess) -> list[CpuSet]:
    """The CPUs of each NUMA node of n1, as the extender knows them."""
    with urllib.request.urlopen(f"http://{extender.web}/api/v1/nodes", timeout=PATIENCE_S) as answer:
        nodes = json.load(answer)
    rows = nodes if isinstance(nodes, list) else nodes["nodes"]
    return [
        CpuSet.parse(numa_node["cpus"]) for node in rows if node["node"] == "n1" for numa_node in node["numa_nodes"]
    ]


def test_smt_is_switched_off_and_on_again(machine: Enforcer, extender: ExtenderProcess) -> None:
    with Runtime(machine.socket, nri_version="0.12.1") as runtime:
        process = machine.start("--extender", extender.grpc)
        runtime.wait_for_plugin(PATIENCE_S)
        own = runtime.run_container(runtime.run_pod("own", annotations=OWN), "app", cpu_request=3)
        member = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
        plain = runtime.run_container(runtime.run_pod("plain"), "app", cpu_request=2)
        until(lambda: seen(extender) == numa_cpus(machine), "the extender knows the machine")
        for online in (SMT_OFF, ALL):
            switch_cpus(machine.sysfs, online)
            until(lambda: seen(extender) == numa_cpus(machine), "the extender knows the machine as it is now")
            home = numa_cpus(machine)[0]
            until(lambda home=home: cpus(runtime, own) | cpus(runtime, member) == home, "nothing is left out")
            assert cpus(runtime, own) <= online
            assert cpus(runtime, own).isdisjoint(cpus(runtime, member))
            assert len(cpus(runtime, own)) == 3
        assert runtime.containers[plain.id].resources.cpu.cpus == ""
        starts = "numakin_enforcer_hook_starts_total"
        until(lambda: f"{starts} 1.0" in machine.get("/metrics")[1], "it is the same hook")
        assert process.poll() is None


def test_an_older_runtime_is_not_asked_out_of_turn_and_takes_it_with_its_next_container(machine: Enforcer) -> None:
    """Before NRI 0.12.1 an update that it has not asked for may lock it up."""
    with Runtime(machine.socket, nri_version="0.10.0") as runtime:
        machine.start()
        runtime.wait_for_plugin(PATIENCE_S)
        first = runtime.run_container(runtime.run_pod("a", annotations=GROUP), "app", cpu_request=2)
        until(lambda: machine.get("/readyz")[0] == 200, "ready")
        switch_cpus(machine.sysfs, SMT_OFF)
        home = numa_cpus(machine)[0]
        until(lambda: [row["cpus"] for row in machine.status()["containers"]] == [str(home)], "the hook knows")
        second = runtime.run_container(runtime.run_pod("b", annotations=GROUP), "app", cpu_request=2)
        assert cpus(runtime, second) == cpus(runtime, first) == home
        assert runtime.unsolicited == 0


def test_reserved_cpus_that_go_offline_are_no_reason_to_stop(machine: Enforcer) -> None:
    with Runtime(machine.socket, nri_version="0.12.1") as runtime:
        machine.start("--reserved-cpus", "0,40,80,120")
        runtime.wait_for_plugin(PATIENCE_S)
        member = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
        switch_cpus(machine.sysfs, SMT_OFF)
        expected = numa_cpus(machine)[0] - CpuSet.parse("0")
        until(lambda: cpus(runtime, member) == expected, "the pool is what is left")
