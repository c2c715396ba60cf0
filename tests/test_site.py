"""The documentation builds as a site, needs no network, and names what is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from extender.config import load
from extender.main import Program
from numakin.kubectl.commands import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a link or an anchor that leads nowhere, or a page that no menu has, is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_site(site):
    assert {path.stem for path in PAGES} <= {path.stem for path in site.glob("*.html")}


def test_no_page_loads_anything_from_the_network(site):
    for page in site.glob("*.html"):
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text())
        assert [url for url in loaded if "canonical" not in url] == [], page.name


def test_every_page_has_a_heading_and_a_place_in_the_menu():
    menu = yaml.dump(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    for page in PAGES:
        assert page.read_text().startswith(("# ", "<!--")), page.name
        assert page.name in menu


def test_every_path_of_the_api_page_is_served():
    served = {
        (method, str(rule))
        for rule in Program(load(["--no-kube"], {})).app().url_map.iter_rules()
        for method in rule.methods
    }
    received = re.findall(r"^\| `(GET|POST) (/[^?`]*)", (ROOT / "docs/api.md").read_text(), re.MULTILINE)
    assert len(received) > 5
    probes = {"/healthz", "/readyz", "/metrics"}
    assert {entry for entry in received if entry[1] not in probes} <= served


def test_every_command_of_kubectl_numakin_is_explained():
    text = (ROOT / "docs/kubectl.md").read_text()
    for command in COMMANDS:
        assert f"| `{command.NAME}" in text
