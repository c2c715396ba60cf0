"""Names, kinds and meanings of all metrics, on pages of the real programs; docs/metrics.md has each, and what fails with what shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from tests.enforcer.running import Enforcer
from tests.extender.running import running
from tests.metrics import families, offences

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs/metrics.md").read_text()
ONLY_WITH_A_CERTIFICATE = {"numakin_enforcer_certificate_expiration_timestamp_seconds"}


@pytest.fixture(scope="module")
def extender_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("extender")
    with ApiServer() as server:
        options = ("--kube", "--kubeconfig", str(server.kubeconfig(folder / "kubeconfig")), "--namespace", "default")
        with running(folder, *options) as extender:
            return extender.get("/metrics")


@pytest.fixture(scope="module")
def enforcer_page() -> str:
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        enforcer = Enforcer(Path(folder))
        try:
            with Runtime(enforcer.socket) as runtime:
                enforcer.start()
                runtime.wait_for_plugin(PATIENCE_S)
                until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
                return enforcer.get("/metrics")[1]
        finally:
            enforcer.close()


def documented(section: str) -> dict[str, str]:
    """Name and kind, by the document's table."""
    text = DOCUMENT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (\w+)(?: by [\w, ]+)? \|", text, re.MULTILINE))


def test_every_name_is_a_good_one(extender_page, enforcer_page):
    assert [*offences(extender_page), *offences(enforcer_page)] == []


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: Debian package prometheus")
def test_prometheus_has_nothing_against_them(extender_page, enforcer_page):
    for page in (extender_page, enforcer_page):
        command = ["promtool", "check", "metrics"]
        output = subprocess.run(command, input=page, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (output.returncode, output.stdout + output.stderr) == (0, "")


def test_no_name_is_exposed_by_both_halves(extender_page, enforcer_page):
    """Else a sum would count twice. What Prometheus' own clients tell of any process has the same name everywhere."""
    both = families(extender_page).keys() & families(enforcer_page).keys()
    assert {name for name in both if not name.startswith("process_")} == set()


def test_each_is_documented_with_its_kind(extender_page, enforcer_page):
    for section, page, optional in (
        ("The extender", extender_page, set()),
        ("The enforcer", enforcer_page, ONLY_WITH_A_CERTIFICATE),
    ):
        exposed = {name: family.type for name, family in families(page).items() if not name.startswith("process_")}
        received = {name: kind for name, kind in documented(section).items() if name not in optional - exposed.keys()}
        assert received == exposed


def test_each_failure_that_is_documented_has_its_metric():
    page = (ROOT / "docs/failures.md").read_text()
    rows = re.findall(r"^\| (?!what fails|---)(.+?) \| .+ \| (.+) \|$", page, re.MULTILINE)
    assert len(rows) > 20, "the tables are not found"
    known = documented("The extender").keys() | documented("The enforcer").keys()
    for failure, shown in rows:
        named = re.findall(r"`(numakin_\w+)", shown)
        assert set(named) <= known, failure
        assert named or shown.startswith("no metric: "), failure
