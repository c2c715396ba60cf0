"""How much of the members' memory is away from their NUMA nodes, as the real program tells it of real cgroups."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path

from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from tests.enforcer.command import command
from tests.enforcer.occupied import TOUCHED, occupied
from tests.enforcer.running import GROUP, Enforcer


def test_who_is_on_another_numa_node_than_its_memory_is_told_by_name(
    enforcer: Enforcer, runtime: Runtime, memory_cgroups: Path
) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    with ExitStack() as stack:
        pods = {
            # Of two groups, as a second one begins on an empty NUMA node.
            name: runtime.run_pod(name, uid=f"uid-{name}-{os.getpid()}", annotations=annotations)
            for name, annotations in (("a", GROUP), ("b", {"group.numakin.io": "other"}), ("stranger", {}))
        }
        for pod in pods.values():
            stack.enter_context(occupied(memory_cgroups, runtime.run_container(pod, "app", cpu_request=2)))
        name = "numakin_enforcer_member_memory_bytes"
        for place in ("local", "remote"):
            until(lambda place=place: enforcer.metric(name, place=place) >= TOUCHED, f"memory is {place}")
            assert enforcer.metric(name, place=place) < 2 * TOUCHED, "one member's, and not the stranger's"

        rows = {row["pod"]: row for row in enforcer.status()["memory"]}
        assert rows.keys() == {"default/a", "default/b"}
        near, far = sorted(rows.values(), key=lambda row: row["home_mems"])
        assert (near["home_mems"], near["away_bytes"]) == ("0", 0)
        assert far["home_mems"] == "1"
        assert far["away_bytes"] == far["bytes"] >= TOUCHED
        shown = command("status", "--run-dir", str(enforcer.run_dir)).stdout
        assert "(100%) of it away from NUMA nodes 1" in shown
        assert f"memory of {near['pod']}: " not in shown
        assert f"memory of {near['pod']}: " in command("status", "--all", "--run-dir", str(enforcer.run_dir)).stdout


def test_without_cgroups_to_read_nothing_is_claimed(enforcer: Enforcer, runtime: Runtime, tmp_path: Path) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    runtime.run_container(runtime.run_pod("a", annotations=GROUP), "app", cpu_request=2)
    until(lambda: enforcer.metric("numakin_enforcer_members") == 1, "it is a member")
    assert "numakin_enforcer_member_memory_bytes{" not in enforcer.get("/metrics")[1]
    (tmp_path / "mounts").write_text("")
    ran = command("status", "--json", "--run-dir", str(enforcer.run_dir), "--procfs", str(tmp_path))
    assert json.loads(ran.stdout)["memory"] == []
