"""Who else may set cpusets on a node is found by its processes, and told as a hint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from enforcer.machine.cpuset_owners import cpuset_owners


def process(procfs: Path, pid: int, *words: str, **environment: str) -> Path:
    folder = procfs / str(pid)
    (folder / "root").mkdir(parents=True)
    (folder / "cmdline").write_text("".join(f"{text}\0" for text in words))
    (folder / "environ").write_text("".join(f"{key}={value}\0" for key, value in environment.items()))
    return folder / "root"


@pytest.mark.parametrize(
    ("words", "environment", "owners"),
    [
        (("/sbin/init",), {}, ()),
        (
            ("/bin/nri-resource-policy-balloons", "--nri-plugin-index", "90"),
            {},
            ("nri-plugins' balloons (NRI index 90)",),
        ),
        (("/koordlet", "--runtime-hooks-nri-plugin-index=00"), {}, ("Koordinator's koordlet (NRI index 00)",)),
        (("/dracpu", "-v=4"), {}, ("dra-driver-cpu",)),
        (
            ("/opt/nri/plugins/20-pin",),
            {"NRI_PLUGIN_NAME": "pin", "NRI_PLUGIN_IDX": "20"},
            ("an NRI plugin that the runtime launched: 20-pin",),
        ),
        (("/opt/nri/plugins/99-numakin",), {"NRI_PLUGIN_NAME": "numakin", "NRI_PLUGIN_IDX": "99"}, ()),
        ((), {}, ()),
        (("/app",), {"NRI_PLUGIN_NAME": "\x1b]0;all is well\x07", "NRI_PLUGIN_IDX": "20"}, ()),
        (("/app",), {"NRI_PLUGIN_NAME": "pin", "NRI_PLUGIN_IDX": "\x1b[2J"}, ()),
        (("/app/koordlet", "--nri-plugin-index=\x1b[2J"), {}, ("Koordinator's koordlet",)),
    ],
    ids=[
        "nobody",
        "by its program",
        "by another's option",
        "without an index",
        "launched",
        "we ourselves",
        "a kernel's",
        "a container's, whose name would write at an operator's terminal",
        "likewise by its index",
        "likewise by an option",
    ],
)
def test_a_process_that_may_set_them(tmp_path: Path, words: tuple, environment: dict, owners: tuple) -> None:
    for pid in (1, 2):  # a plugin of several processes is named once
        process(tmp_path, pid, *words, **environment)
    (tmp_path / "3").mkdir()  # has ended
    assert cpuset_owners(tmp_path) == owners


def test_the_kubelets_static_policy_is_named_first(tmp_path: Path) -> None:
    root = process(tmp_path, 7, "/usr/bin/kubelet") / "var/lib/kubelet"
    root.mkdir(parents=True)
    (root / "cpu_manager_state").write_text(json.dumps({"policyName": "static"}))
    process(tmp_path, 8, "/dracpu")
    assert cpuset_owners(tmp_path) == ("the kubelet (cpuManagerPolicy static)", "dra-driver-cpu")
