"""The images as they are really built, and the programs as they run in them.

By hand for another architecture than the machine's: NUMAKIN_IMAGES_ARCHITECTURE=arm64. QEMU then emulates all programs
of the build and of the images, and the build takes longer than an hour.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import PATIENCE_S, until
from tests.e2e.conftest import absent
from tests.e2e.lab import place
from tests.extender.running import Extender, machine, recorded, reservation
from tests.tools.setup import built_images
from tests.tools.setup.built_images import NAMES, ROOT, Image, inside

EMULATED = built_images.ARCHITECTURE != built_images.OWN

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(14400 if EMULATED else 3600)]
"""The first test builds what is not in the cache: 4 minutes, beside all other tests 15 or more."""

MEGABYTES = 200
"""What docs/operations.md promises of each image, uncompressed."""

MACHINES = {"amd64": 62, "arm64": 183}
"""EM_X86_64 and EM_AARCH64 of an ELF header's e_machine (elf.h)."""

PROGRAMS = {"enforcer": "numakin-enforcer", "extender": "numakin-extender"}


@pytest.fixture(scope="module")
def images() -> dict[str, Image]:
    if reason := place.lacking(built_images.TOOLS | place.foreign_tools(built_images.ARCHITECTURE)):
        absent(f"building images {reason}")
    return built_images.images(built_images.ARCHITECTURE)


@pytest.fixture(params=NAMES)
def image(images: dict[str, Image], request: pytest.FixtureRequest) -> Image:
    return images[request.param]


def ran(image: Image, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    whole = [*inside(image, folder), *command]
    return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def machines(root: Path) -> Iterator[tuple[int, Path]]:
    """What each ELF file in a folder is for."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(20)
            if head.startswith(b"\x7fELF"):
                yield struct.unpack_from("<H", head, 18)[0], path


def test_every_program_and_library_is_for_the_architecture_that_the_image_names(image: Image) -> None:
    assert image.architecture == built_images.ARCHITECTURE
    found = [*machines(image.root)]
    assert "cygrpc" in {path.name.partition(".")[0] for _, path in found}
    assert [path for machine, path in found if machine != MACHINES[image.architecture]] == []


def test_an_image_is_no_larger_than_promised(image: Image) -> None:
    assert image.megabytes < MEGABYTES


@pytest.mark.skipif(EMULATED, reason="an emulated build takes an hour, and is made once")
def test_two_builds_have_the_same_layers(images: dict[str, Image]) -> None:
    twice = images[built_images.TWICE]
    assert twice.layers == twice.again


def test_the_program_starts_by_its_entrypoint(image: Image, tmp_path: Path) -> None:
    run = ran(image, tmp_path, *image.config["Entrypoint"], "--help")
    assert f"usage: {PROGRAMS[image.name]}" in run.stdout
    assert (run.returncode, run.stderr) == (0, "")


def test_the_list_of_contents_has_what_was_locked(image: Image) -> None:
    listed = json.loads((image.root / "opt/numakin/sbom.cdx.json").read_text())["components"]
    found = {(re.sub(r"[-_.]+", "-", each["name"]).lower(), each["version"]) for each in listed}
    locked = (ROOT / f"tools/setup/locked/{image.name}.txt").read_text()
    pinned = {
        (name, version)
        for name, version, only in re.findall(r"^([\w.-]+)==(\S+)( ;.*)? \\$", locked, re.MULTILINE)
        if not only
    }
    assert pinned
    assert pinned <= found


def test_python_compiles_nothing_at_a_start(image: Image) -> None:
    """By time, all bytecode would be out of date: a layer's files have one time."""
    compiled = [*image.root.glob("usr/lib/python3*/**/*.pyc"), *image.root.glob("opt/numakin/**/*.pyc")]
    assert any("/json/" in str(each) for each in compiled)
    assert any(f"/{image.name}/" in str(each) for each in compiled)
    assert [each for each in compiled if struct.unpack("<I", each.read_bytes()[4:8]) == (0,)] == []


def test_the_enforcer_finds_its_compiled_programs_and_checks_a_node(images: dict[str, Image], tmp_path: Path) -> None:
    run = ran(images["enforcer"], tmp_path, "numakin-enforcer", "doctor", "--json")
    assert "Traceback" not in run.stderr
    assert {each["topic"] for each in json.loads(run.stdout)} >= {"traffic"}
    built = "enforcer/observe/bpf/built"
    shipped = {each.name for each in (ROOT / built).glob("*.json")}
    assert {each.name for each in (images["enforcer"].packages / built).glob("*.json")} == shipped


def test_nothing_can_be_installed_in_the_extender_s(images: dict[str, Image]) -> None:
    root = images["extender"].root
    for gone in ("usr/bin/apt-get", "usr/bin/perl", "usr/bin/passwd", "opt/numakin/bin/numakin-enforcer"):
        assert not (root / gone).exists(), gone
    for gone in (
        "pip",
        "enforcer",
        "aiohttp",
        "rich",
        "kubernetes/aio",
        "kubernetes/client/models/v1_pod.py",
        "numpy/random",
    ):
        assert not (images["extender"].packages / gone).exists(), gone
    assert (images["extender"].packages / "numpy/_core").exists()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        server.create_node("n1")
        yield server


@contextmanager
def started(images: dict[str, Image], folder: Path, server: ApiServer, *options: str) -> Iterator[Extender]:
    kube = ("--kube", "--kubeconfig", str(server.kubeconfig(folder / "kubeconfig")), "--namespace", "numakin")
    python = (*inside(images["extender"], folder), "/opt/numakin/bin/python", "-P")
    extender = Extender(folder, *kube, *options, python=python)
    try:
        yield extender
    finally:
        extender.stop()


def test_the_extender_serves_all_sides_as_no_root(images: dict[str, Image], tmp_path: Path, server: ApiServer) -> None:
    with started(images, tmp_path, server) as extender:
        status = Path(f"/proc/{extender.program.pid}/status").read_text()
        assert re.findall(r"^(?:Uid|Gid):\t(\d+)|^CapEff:\t0+$", status, re.MULTILINE) == ["65532", "65532", ""]
        extender.enforcer("n1").report(machine(), reservation("kin", "1"))
        until(lambda: 'watch_synced{resource="pods"} 1.0' in extender.get("/metrics"), "the pods are listed")
        assert extender.scores(recorded("basic-nodecache-true.prioritize", opted_in=True))["n1"] > 0
        assert extender.post("filter", recorded("basic-nodecache-true.filter"))["NodeNames"] == ["n1", "n2", "n3"]
        assert [node["node"] for node in extender.get("/api/v1/nodes")["nodes"]] == ["n1"]
        assert "<title>" in extender.get("/")
        failures = re.findall(r"thread_failures_total\{.*\} (.+)", extender.get("/metrics"))
        assert {*failures} == {"0.0"}
        assert "ModuleNotFoundError" not in extender.log.read_text()


def test_the_extender_makes_its_own_certificates(images: dict[str, Image], tmp_path: Path, server: ApiServer) -> None:
    with started(images, tmp_path, server, "--own-ca") as extender:
        secret = server.get("v1", "secrets", "numakin-kube-scheduler", "numakin")
        assert "BEGIN CERTIFICATE" in base64.b64decode(secret["data"]["tls.crt"]).decode()
        assert "ModuleNotFoundError" not in extender.log.read_text()


def test_the_program_of_helm_test_is_in_the_extender_s(images: dict[str, Image], tmp_path: Path) -> None:
    asked = ("--service=127.0.0.1:1", "--replicas=127.0.0.1:1", "--ca=/no/ca.crt", "--token=/no/token", "--patience=0")
    run = ran(images["extender"], tmp_path, "/opt/numakin/bin/python", "-m", "extender.check", *asked)
    assert run.returncode == 3, run.stderr
    assert run.stdout.startswith("FAILED: no certificates of a CA in /no/ca.crt: ")
