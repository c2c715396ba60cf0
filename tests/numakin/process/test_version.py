"""One version for the package, both programs and what they report."""

import tomllib
from pathlib import Path

from numakin.process.version import VERSION


def test_the_package_has_the_programs_version():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
