"""docs/privileges.md has each privilege that the manifests grant, and names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cluster.rights import Right, granted
from tests.manifests.rendered import files, one

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "privileges.md").read_text()
ENFORCER, EXTENDER = PAGE.split("## The extender's rights")


def rows(part: str) -> list[list[str]]:
    """The cells of the tables' rows."""
    lines = [line for line in part.splitlines() if line.startswith("| ") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def named(row: str) -> str:
    """What a row's first cell is about, in code."""
    return (re.findall(r"`([^`]+)`", row) or [""])[0]


def test_each_power_and_mount_of_the_enforcer_is_explained():
    spec = one(files(), "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    context = container["securityContext"]
    granted_here = {*context["capabilities"]["add"], *(mount["mountPath"] for mount in container["volumeMounts"])}
    granted_here |= {"hostPID"} if spec["hostPID"] else set()
    granted_here |= {context["appArmorProfile"]["type"], context["seLinuxOptions"]["type"]}
    assert granted_here == {named(row[0]) for row in rows(ENFORCER)[1:]}


def test_read_only_mounts_are_said_to_be():
    (container,) = one(files(), "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]["containers"]
    read_only = {mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")}
    assert read_only == {named(row[0]) for row in rows(ENFORCER) if "(read-only)" in row[0]}


def test_each_right_of_the_extender_is_explained():
    explained = {
        Right("" if group == "core" else group, resource, verb)
        for group, resource, verbs, _ in rows(EXTENDER)[1:]
        for verb in verbs.split(", ")
    }
    assert explained == granted(one(files(), kind, "numakin-extender") for kind in ("ClusterRole", "Role"))


def test_the_tests_that_it_names_are_there():
    paths = set(re.findall(r"`(tests/[^`]+)`", PAGE))
    assert {path for path in paths if not (ROOT / path).is_file()} == set()
