"""The images for arm64, built to their end on whatever machine this is, and their programs run from them.

On another machine than an Arm one QEMU emulates all programs of the build and of the images.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import absent
from tests.e2e.lab import place
from tests.setup import built_images
from tests.setup.built_images import Image
from tests.setup.test_built_images import (  # noqa: F401 -- the same tests, of these images
    image,
    server,
    test_an_image_is_no_larger_than_promised,
    test_nothing_can_be_installed_in_the_extender_s,
    test_python_compiles_nothing_at_a_start,
    test_the_enforcer_finds_its_compiled_programs_and_checks_a_node,
    test_the_extender_makes_its_own_certificates,
    test_the_extender_serves_all_sides_as_no_root,
    test_the_list_of_contents_has_what_was_locked,
    test_the_program_of_helm_test_is_in_the_extender_s,
    test_the_program_starts_by_its_entrypoint,
)

pytestmark = pytest.mark.timeout(7200)

MAGIC = b"\x7fELF"
AARCH64 = 183
"""EM_AARCH64 of an ELF header's e_machine."""


@pytest.fixture(scope="module")
def images() -> dict[str, Image]:
    if reason := place.lacking(built_images.TOOLS | place.foreign_tools("arm64")):
        absent(f"building images {reason}")
    return built_images.images("arm64")


def machines(root: Path) -> Iterator[tuple[int, Path]]:
    """What each ELF file in a folder is for."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(20)
            if head.startswith(MAGIC):
                yield struct.unpack_from("<H", head, 18)[0], path


def test_every_program_and_library_is_for_arm64(image: Image) -> None:  # noqa: F811 -- the fixture
    found = [*machines(image.root)]
    assert [path for machine, path in found if machine != AARCH64] == []
    assert "cygrpc" in {path.name.partition(".")[0] for _, path in found}


def test_each_says_so_of_itself(image: Image) -> None:  # noqa: F811 -- the fixture
    assert image.architecture == "arm64"
