"""tools/setup/images asks a builder for what was wanted, and says what is missing. What is built: test_built_images.py."""

from __future__ import annotations

import platform
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
DOCKERFILES = sorted((ROOT / "manifests/images").glob("*/Dockerfile"))
DEBIAN = re.compile(r"docker\.io/library/debian:trixie-slim@sha256:[0-9a-f]{64}")
OWN, OTHER = ("amd64", "arm64") if platform.machine() != "aarch64" else ("arm64", "amd64")
TAG = "v1"


def asked(folder: Path, *options: str, builders: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """tools/setup/images on a machine that has these builders alone, each a shell script."""
    path = folder / "bin"
    path.mkdir()
    for name, script in builders.items():
        (path / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (path / name).chmod(0o755)
    command = [sys.executable, ROOT / "tools/setup/images", *options]
    environment = {"PATH": str(path), "SOURCE_DATE_EPOCH": "7"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd=folder
    )


def noting(folder: Path) -> str:
    """A builder that notes what it was asked, but for whether it works."""
    return f'[ "$1" = info ] || echo "$@" >> {folder}/asked'


def notes(folder: Path) -> list[str]:
    return (folder / "asked").read_text().splitlines()


def bases(text: str) -> list[str]:
    """Of each stage that is made from another image; defaults of arguments are put in."""
    defaults = dict(re.findall(r"^ARG (\w+)=(\S*)", text, re.MULTILINE))
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?", text, re.MULTILINE)
    named = {name for _, name in stages} | {"scratch"}
    whole = [re.sub(r"\$\{(\w+)\}", lambda match: defaults[match[1]], base) for base, _ in stages]
    return [base for base in whole if base not in named]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
def test_every_base_is_named_by_digest(dockerfile: Path) -> None:
    """But for numakin's own image, which has no digest before it is built."""
    found = bases(dockerfile.read_text())
    assert found
    if dockerfile.parent.name == "compare":
        assert [base.partition(":")[0] for base in found] == ["numakin-enforcer"]
    else:
        assert [base for base in found if not DEBIAN.fullmatch(base)] == []


def test_all_images_have_the_same_base() -> None:
    assert len({base for path in DOCKERFILES for base in bases(path.read_text()) if "@" in base}) == 1


def test_the_enforcer_s_and_the_extender_s_are_built_for_this_machine(tmp_path: Path) -> None:
    run = asked(tmp_path, "--tag", TAG, builders={"buildah": noting(tmp_path)})
    assert run.stdout == "numakin-enforcer:v1\nnumakin-extender:v1\n"
    first, second = notes(tmp_path)
    assert first == (
        f"build --file manifests/images/enforcer/Dockerfile --platform linux/{OWN} --tag numakin-enforcer:v1 --timestamp 7 ."
    )
    assert "images/extender/Dockerfile" in second


def test_an_image_names_its_commit(tmp_path: Path) -> None:
    """`make release` takes an image out by it."""
    asked(tmp_path, "enforcer", builders={"buildah": noting(tmp_path), "git": "echo abcdef-dirty"})
    (build,) = notes(tmp_path)
    assert "--label org.opencontainers.image.revision=abcdef-dirty" in build


def test_compare_is_made_from_the_enforcer_s_of_that_name(tmp_path: Path) -> None:
    options = ("compare", "enforcer", "--registry", "registry.example/team/", "--tag", TAG)
    run = asked(tmp_path, *options, builders={"podman": noting(tmp_path)})
    assert run.returncode == 0
    first, second = notes(tmp_path)
    assert "--tag registry.example/team/numakin-enforcer:v1" in first
    assert "--build-arg ENFORCER=registry.example/team/numakin-enforcer:v1" in second


def test_options_reach_the_builder(tmp_path: Path) -> None:
    options = ("enforcer", "--bcc", "--base", "mirror.example/debian@sha256:0", "--", "--volume", "/a:/b")
    asked(tmp_path, *options, builders={"buildah": noting(tmp_path)})
    (build,) = notes(tmp_path)
    assert "--build-arg BASE=mirror.example/debian@sha256:0 --build-arg BPF=python3-bpfcc --volume /a:/b ." in build


@pytest.mark.parametrize(("builder", "fresh"), [("podman", "--layers=false"), ("docker", "--no-cache")])
def test_debian_s_packages_are_not_those_of_an_earlier_build(tmp_path: Path, builder: str, fresh: str) -> None:
    """Both would take what an earlier build's `apt-get update` had found; buildah does not."""
    asked(tmp_path, "enforcer", builders={builder: noting(tmp_path)})
    (build,) = notes(tmp_path)
    assert f" {fresh} " in build


BOTH = ("enforcer", "--platform", "linux/amd64,linux/arm64", "--tag", TAG, "--registry", "r.example")


def foreign_programs_run() -> bool:
    """By tools/setup/images itself: its own rule where handlers can't be seen."""
    runs_here: Callable[[str], bool] = runpy.run_path(str(ROOT / "tools/setup/images"))["runs_here"]
    return runs_here(f"linux/{OTHER}")


def test_several_architectures_are_a_list_that_is_begun_anew_and_pushed_whole(tmp_path: Path) -> None:
    if not foreign_programs_run():
        pytest.skip(f"needs a handler for programs of {OTHER}: apt-get install qemu-user-static")
    run = asked(tmp_path, *BOTH, "--push", builders={"buildah": noting(tmp_path)})
    assert run.returncode == 0, run.stderr
    forgotten, build, push = notes(tmp_path)
    assert forgotten == "manifest rm r.example/numakin-enforcer:v1"
    assert "--platform linux/amd64,linux/arm64 --manifest r.example/numakin-enforcer:v1" in build
    assert push == "manifest push --all r.example/numakin-enforcer:v1 docker://r.example/numakin-enforcer:v1"


def test_docker_pushes_a_list_as_it_builds_it(tmp_path: Path) -> None:
    assert asked(tmp_path, *BOTH, "--push", builders={"docker": noting(tmp_path)}).returncode == 0
    (build,) = notes(tmp_path)
    assert build.startswith(
        "buildx build --push --file manifests/images/enforcer/Dockerfile --platform linux/amd64,linux/arm64"
    )


@pytest.mark.parametrize(
    ("options", "builders", "complaint"),
    [
        ((), {}, "buildah: not installed; podman: not installed; docker: not installed). On Debian"),
        ((), {"docker": "echo no daemon answers >&2; exit 1"}, "docker: no daemon answers)"),
        (("--builder", "podman"), {"buildah": ""}, "nothing here builds images (podman: not installed)"),
        (("enforcer",), {"buildah": '[ "$1" = info ]'}, "`buildah build` failed with status 1; its messages are above"),
        (BOTH, {"docker": ""}, "docker keeps no list of architectures without a registry: add --push"),
        (("kubelet",), {}, "no image is called kubelet: there are enforcer, extender, compare"),
        (("--platform", "linux/s390x"), {}, "numakin is built for linux/amd64 and linux/arm64, not for 'linux/s390x'"),
    ],
    ids=["no builder", "no daemon", "another builder", "a failure", "a list", "an image", "an architecture"],
)  # fmt: skip
def test_what_can_t_be_done_is_said(
    tmp_path: Path, options: tuple[str, ...], builders: dict[str, str], complaint: str
) -> None:
    run = asked(tmp_path, *options, builders=builders)
    assert run.returncode != 0
    assert complaint in run.stderr
    assert "Traceback" not in run.stderr
