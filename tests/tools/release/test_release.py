"""A release is cut offline from a commit: one version everywhere, and each file as those who install it will use it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.standins.patience import PATIENCE_S
from tests.numakin.kubectl.conftest import extender
from tests.numakin.kubectl.documents import deployment
from tests.tools.release.checkout import ROOT, VERSION, Checkout

__all__ = ["extender"]

pytestmark = pytest.mark.thorough

PLATFORMS = [(system, machine) for system in ("linux", "darwin", "windows") for machine in ("amd64", "arm64")]


@pytest.fixture(scope="module")
def release(checkout: Checkout) -> Path:
    run = checkout.cut("--no-images", "--url", "https://files.example/v1")
    assert run.returncode == 0, run.stderr
    return checkout.released


def test_everything_that_is_published_is_there_with_its_checksum(release: Path) -> None:
    sums = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())
    assert {*sums} == {
        f"numakin-{VERSION}-py3-none-any.whl", f"numakin-{VERSION}.tar.gz", f"numakin-chart-{VERSION}.tgz",
        "kubectl-numakin.pyz", f"kubectl-numakin-{VERSION}.tar.gz", "numakin.yaml", "tag.txt",
        *(f"numakin-{part}-{VERSION}.cdx.json" for part in ("plugin", "extender", "enforcer")),
    }  # fmt: skip
    assert sums == {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in sums}


def test_the_tag_tells_what_the_changelog_tells(release: Path) -> None:
    first, _, *rest = (release / "tag.txt").read_text().splitlines()
    assert first == f"numakin {VERSION}"
    assert rest[0].startswith("The first release.")


def test_the_packages_hold_the_committed_files(release: Path) -> None:
    wheel = set(zipfile.ZipFile(release / f"numakin-{VERSION}-py3-none-any.whl").namelist())
    with tarfile.open(release / f"numakin-{VERSION}.tar.gz") as sdist:
        source = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"extender/web/assets/index.html", "numakin/kubectl/main.py", "enforcer/observe/bpf/loader.py"} <= wheel
    assert {name for name in wheel if ".dist-info/" not in name} <= source


def test_the_chart_is_helms(release: Path, checkout: Checkout) -> None:
    with tarfile.open(release / f"numakin-chart-{VERSION}.tgz") as chart:
        names = set(chart.getnames())
        assert yaml.safe_load(chart.extractfile("numakin/Chart.yaml"))["version"] == VERSION
    there = (path for path in (checkout.folder / "charts/numakin").rglob("*") if path.is_file())
    assert names == {str(path.relative_to(checkout.folder / "charts")) for path in there}


@pytest.mark.parametrize("part", ["plugin", "extender", "enforcer"])
def test_the_lists_of_contents_have_what_is_locked(release: Path, part: str) -> None:
    listed = json.loads((release / f"numakin-{part}-{VERSION}.cdx.json").read_text())
    locked = (ROOT / f"tools/setup/locked/{part}.txt").read_text()
    assert listed["bomFormat"] == "CycloneDX"
    pins = {name for name, _ in re.findall(r"^([\w.-]+)==(\S+)", locked, re.MULTILINE)}
    assert {each["name"].lower().replace("_", "-") for each in listed["components"]} == pins


def selected(selector: dict[str, Any], system: str, machine: str) -> bool:
    wanted = {"os": system, "arch": machine}
    return all(
        wanted[each["key"]] in each["values"] for each in selector["matchExpressions"] if each["operator"] == "In"
    )


def test_krew_would_take_the_manifest(release: Path) -> None:
    """By its own rules (internal/index/validation, cmd/validate-krew-manifest), which name the file after the plugin."""
    manifest = yaml.safe_load((release / "numakin.yaml").read_text())
    assert (manifest["apiVersion"], manifest["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    spec = manifest["spec"]
    assert manifest["metadata"]["name"] == "numakin"
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
    assert spec["shortDescription"]
    assert "\n" not in spec["shortDescription"]
    matching = [
        [system for system, machine in PLATFORMS if selected(each["selector"], system, machine)]
        for each in spec["platforms"]
    ]
    assert matching == [["linux"] * 2 + ["darwin"] * 2]
    (platform,) = spec["platforms"]
    assert {expression["key"] for expression in platform["selector"]["matchExpressions"]} <= {"os", "arch"}
    archive = release / platform["uri"].removeprefix("https://files.example/v1/")
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as packed:
        assert {*packed.getnames()} == {each["from"] for each in platform["files"]} == {platform["bin"], "LICENSE"}
        assert packed.getmember(platform["bin"]).mode & 0o111
        assert packed.extractfile(platform["bin"]).read() == (release / "kubectl-numakin.pyz").read_bytes()


class TestTheOneFile:
    """As it is on a machine with Python and nothing else."""

    @pytest.fixture
    def file(self, release: Path, tmp_path: Path) -> Path:
        path = tmp_path / "kubectl-numakin"
        shutil.copy(release / "kubectl-numakin.pyz", path)
        return path

    def ask(self, file: Path, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [os.path.realpath(sys.executable), "-I", "-S", "-W", "error", file, *words]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env={}, timeout=PATIENCE_S, check=False
        )

    def test_it_tells_its_commands_and_its_version(self, file: Path) -> None:
        assert "explain" in self.ask(file, "--help").stdout
        assert self.ask(file, "--version").stdout == f"kubectl-numakin {VERSION}\n"

    def test_it_explains_and_plans(self, file: Path, extender) -> None:
        at = f"--extender=http://{extender.web_address}"
        explained = self.ask(file, "explain", "pod", "cart-0", "-n", "shop", at)
        assert (explained.returncode, explained.stderr) == (0, "")
        assert "shop/cart-0" in explained.stdout
        planned = self.ask(file, "plan", "-f", "-", "-n", "shop", "-o", "json", at, stdin=yaml.safe_dump(deployment(2)))
        assert (planned.returncode, planned.stderr) == (0, "")
        assert len(json.loads(planned.stdout)["pods"]) == 2

    def test_it_starts_by_its_own_first_line(self, file: Path) -> None:
        run = subprocess.run([file, "--help"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert run.stdout.startswith("usage: kubectl numakin")

    def test_by_its_other_name_it_completes(self, file: Path) -> None:
        other = file.with_name("kubectl_complete-numakin")
        other.symlink_to(file)
        assert "explain" in self.ask(other, "exp").stdout

    def test_what_one_kind_of_machine_alone_could_run_is_not_in_it(self, file: Path) -> None:
        names = zipfile.ZipFile(file).namelist()
        assert [name for name in names if name.endswith((".so", ".pyd", ".dylib"))] == []
        assert {name.partition("/")[0] for name in names}.isdisjoint({"extender", "enforcer"})

    def test_too_old_a_python_says_so(self, file: Path) -> None:
        source = zipfile.ZipFile(file).read("__main__.py").decode()
        code = f"import sys; sys.version_info = (3, 9, 2, 'final', 0); exec({source!r})"
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": "/nonexistent"}, check=False
        )
        assert run.returncode == 2
        assert run.stderr.startswith("kubectl numakin: needs Python 3.11 or newer; ")
        assert run.stderr.endswith(" is 3.9\n")
