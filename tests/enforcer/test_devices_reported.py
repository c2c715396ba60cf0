"""What the page shows of a node's devices: from its sysfs, through the enforcer and its stream, to the extender."""

from __future__ import annotations

from pathlib import Path

from lab.standins.machines import MACHINES, write_sysfs
from lab.standins.patience import until
from lab.standins.runtime.runtime import Runtime
from tests.enforcer.machine.pci_tree import Machine
from tests.enforcer.running import Enforcer
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
