"""What the page shows of a node's devices: from its sysfs, through the enforcer and its stream, to the extender."""

from __future__ import annotations

from pathlib import Path

from lab.standins.kubelet import Kubelet
from lab.standins.machines import MACHINES, write_sysfs
from lab.standins.patience import until
from lab.standins.runtime.runtime import Runtime
from tests.enforcer.machine.pci_tree import Machine
from tests.enforcer.running import GROUP, Enforcer
from tests.extender.running import running


def test_devices_of_the_machine_reach_the_extender(enforcer: Enforcer, tmp_path: Path) -> None:
    write_sysfs(MACHINES["xeon-8380"], tmp_path / "sys")
    Machine(tmp_path / "sys").add("0000:81:00.0", "0x020000", "net/eth0", driver="ice")
    enforcer.sysfs = tmp_path / "sys"
    (tmp_path / "extender").mkdir()
    with running(tmp_path / "extender") as extender, Runtime(enforcer.socket):
        enforcer.start("--extender", extender.grpc_address)

        def reported() -> list[dict[str, object]]:
            status, story = extender.ask("GET", "/api/v1/node?node=n1")
            health = story["enforcer"]["health"] if status == 200 else None
            return health["devices"] if health else []

        (device,) = until(reported, "the device is shown")
        enforcer.close()
    assert device == {
        "address": "0000:81:00.0", "kind": "network", "driver": "ice", "names": ["eth0"], "numa_node": 1,
    }  # fmt: skip


def test_free_devices_of_the_kubelet_s_plugins_reach_the_extender_and_what_a_pod_takes_is_free_no_more(
    enforcer: Enforcer, tmp_path: Path
) -> None:
    (tmp_path / "extender").mkdir()
    path = enforcer.folder / "kubelet.sock"
    with (
        running(tmp_path / "extender") as extender,
        Kubelet(path) as kubelet,
        Runtime(enforcer.socket) as runtime,
    ):
        kubelet.plug("example.com/gpu", ("g0", (0,)), ("g1", (1,)))
        enforcer.start("--extender", extender.grpc_address, "--podresources-socket", str(path))

        def free() -> dict[str, int]:
            nodes = extender.get("/api/v1/nodes")["nodes"]
            return {row["numa_nodes"]: row["free"] for node in nodes for row in node["free_devices"]}

        until(lambda: free() == {"0": 1, "1": 1}, "both are free")
        assert [row["free"] for row in enforcer.status()["free_devices"]] == [1, 1]
        kubelet.admit("ns", "trainer", "app", "example.com/gpu", ("g1", (1,)))
        runtime.run_pod("trainer", "ns", annotations=GROUP)
        until(lambda: free() == {"0": 1, "1": 0}, "one is free")
        enforcer.close()
