"""What one installs is what one gets: the plugin alone, the extender and the enforcer, each with what it imports."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.parts import ROOT, asked_for, built_wheel, installed, ran

PLUGIN = ""
PARTS = {
    PLUGIN: ("numakin.kubectl", "numakin.compare", "numakin.placement", "numakin.process"),
    "extender": ("extender", "numakin.wire", "numakin.placement", "numakin.process", "numakin.kubectl.recordings"),
    "enforcer": ("enforcer", "numakin.wire", "numakin.compare", "numakin.placement", "numakin.process"),
}
"""Packages of each part."""

BELONG_TO_THE_EXTENDER = "numakin.kubectl.recordings"
"""`replay` places pods by the extender's own code."""

IMPORT_ALL = """
import importlib, json, pkgutil
names, failed = [], {}
for package in sys.argv[1:]:
    top = importlib.import_module(package)
    names += [package, *(each.name for each in pkgutil.walk_packages(top.__path__, package + "."))]
for name in names:
    if name.endswith("__main__"):
        continue
    try:
        importlib.import_module(name)
    except ImportError as bad:
        failed[name] = str(bad)
print(json.dumps({"imported": len(names), "failed": failed}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_three_packages_and_nothing_else(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"numakin", "enforcer", "extender"}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part or "the plugin alone")
def test_every_module_of_a_part_is_imported_with_nothing_else_there(wheel: Path, tmp_path: Path, part: str) -> None:
    site = installed(tmp_path / "site", wheel, part)
    run = ran(site, IMPORT_ALL, *PARTS[part])
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    left = {} if part == "extender" else {name for name in told["failed"] if name.startswith(BELONG_TO_THE_EXTENDER)}
    assert {name: why for name, why in told["failed"].items() if name not in left} == {}
    assert told["imported"] > 40


def test_the_plugin_alone_brings_nothing_of_the_programs() -> None:
    assert {*asked_for(PLUGIN)} == {
        "markdown-it-py", "mdurl", "prometheus-client", "pygments", "pyyaml", "rich", "urllib3", "websocket-client",
    }  # fmt: skip


def test_the_enforcer_s_part_brings_none_of_the_extender_s_packages() -> None:
    assert {*asked_for("enforcer")}.isdisjoint({"cryptography", "flask", "kubernetes", "msgspec", "numpy"})


def test_the_plugin_alone_runs_and_says_what_replay_needs(wheel: Path, tmp_path: Path) -> None:
    site = installed(tmp_path / "site", wheel, PLUGIN)
    code = "from numakin.kubectl.main import main; sys.exit(main())"
    assert "explain" in ran(site, code, "--help").stdout
    replay = ran(site, code, "replay", "/nonexistent")
    assert replay.returncode == 2
    assert replay.stderr.endswith("is not installed: pip install 'numakin[extender]'\n")


def test_google_clouds_proto_is_left_alone(wheel: Path, tmp_path: Path) -> None:
    """proto-plus is imported as `proto`, by every client of google-cloud's."""
    site = installed(tmp_path / "site", wheel, "enforcer", "proto-plus")
    run = ran(site, "import numakin.wire.report_pb2, proto; print(hasattr(proto, 'Message'))")
    assert (run.stdout, run.stderr) == ("True\n", "")


def test_the_tree_has_few_folders_at_its_top() -> None:
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, check=True, text=True).stdout
    assert len({name.partition("/")[0] for name in tracked.splitlines() if "/" in name}) <= 16
