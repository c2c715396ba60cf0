"""The extender as a real process that has nothing but what its image keeps of the packages it is made from."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

from standins.apiserver import ApiServer
from standins.patience import until
from tests.extender.running import Extender, machine, recorded, reservation

ROOT = Path(__file__).parents[2]
OWN = ("extender", "placement", "process", "proto", "enforcer", "kubectl_numakin", "comparison")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of packages as the Dockerfile makes it."""
    folder = tmp_path_factory.mktemp("image") / "site-packages"
    for name in OWN:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in {*re.findall(r"^([\w.-]+)==", (ROOT / "setup/locked/extender.txt").read_text(), re.MULTILINE)}:
        with suppress(PackageNotFoundError):
            for file in files(name) or ():
                if ".." not in file.parts and file.suffix != ".pyc":
                    target = folder / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    _linked(Path(str(file.locate())), target)
    subprocess.run([ROOT / "manifests/images/extender/trim", folder], check=True, timeout=120)
    return folder


def _linked(source: Path, target: Path) -> None:
    """The same file where one file system has both."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        server.create_node("n1")
        yield server


@contextmanager
def started(folder: Path, kept: Path, server: ApiServer, *options: str) -> Iterator[Extender]:
    """No package is found elsewhere: neither those of the tests nor the project's own folder."""
    kube = ("--kube", "--kubeconfig", str(server.kubeconfig(folder / "kubeconfig")), "--namespace", "numakin")
    python, environment = (sys.executable, "-P", "-S"), {"PYTHONPATH": str(kept)}
    extender = Extender(folder, *kube, *options, python=python, environment=environment)
    try:
        yield extender
    finally:
        extender.stop()


def test_what_the_image_leaves_out_is_gone(kept: Path) -> None:
    for gone in ("enforcer", "aiohttp", "rich", "kubernetes/aio", "kubernetes/client/models/v1_pod.py", "numpy/random"):
        assert not (kept / gone).exists(), gone
    assert (kept / "numpy/_core").exists()


def test_the_extender_serves_all_sides(tmp_path: Path, kept: Path, server: ApiServer) -> None:
    with started(tmp_path, kept, server) as extender:
        extender.enforcer("n1").report(machine(), reservation("kin", "1"))
        until(lambda: 'watch_synced{resource="pods"} 1.0' in extender.get("/metrics"), "the pods are listed")
        assert extender.scores(recorded("basic-nodecache-true.prioritize", opted_in=True))["n1"] > 0
        assert extender.post("filter", recorded("basic-nodecache-true.filter"))["NodeNames"] == ["n1", "n2", "n3"]
        assert [node["node"] for node in extender.get("/api/v1/nodes")["nodes"]] == ["n1"]
        assert "<title>" in extender.get("/")
        failures = re.findall(r"thread_failures_total\{.*\} (.+)", extender.get("/metrics"))
        assert {*failures} == {"0.0"}
        assert "ModuleNotFoundError" not in extender.log.read_text()


def test_it_makes_its_own_certificates(tmp_path: Path, kept: Path, server: ApiServer) -> None:
    with started(tmp_path, kept, server, "--own-ca") as extender:
        secret = server.get("v1", "secrets", "numakin-kube-scheduler", "numakin")
        assert "BEGIN CERTIFICATE" in base64.b64decode(secret["data"]["tls.crt"]).decode()
        assert "ModuleNotFoundError" not in extender.log.read_text()


def test_the_program_of_helm_test_is_in_it(tmp_path: Path, kept: Path) -> None:
    command = [sys.executable, "-P", "-S", "-m", "extender.check", "--service=127.0.0.1:1", "--replicas=127.0.0.1:1"]
    files = ("--ca=/no/ca.crt", "--token=/no/token", "--patience=0")
    done = subprocess.run(
        [*command, *files],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
        env={"PYTHONPATH": str(kept)},
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("FAILED: no certificates of a CA in /no/ca.crt: ")
