"""Dashboards and alerts: every query asks for metrics that there are, and a real Prometheus takes and answers it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.demo.cluster import OPT_IN, Cluster
from lab.standins.patience import PATIENCE_S, until
from numakin.process.ports import free_address
from tests.manifests.rendered import MANIFESTS

MONITORING = MANIFESTS / "components/monitoring"
DOCS = MANIFESTS.parent / "docs"
RULES = yaml.safe_load((MONITORING / "rules.yaml").read_text())["spec"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARDS = {path.name: json.loads(path.read_text()) for path in sorted((MONITORING / "dashboards").glob("*.json"))}

PROMETHEUS = pytest.mark.skipif(
    not shutil.which("prometheus") or not shutil.which("promtool"), reason="prometheus is not installed"
)


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries() -> dict[str, str]:
    """By where it stands; Grafana's own variables filled in."""
    result = {f"alert {rule['alert']}": rule["expr"] for rule in ALERTS}
    for name, board in DASHBOARDS.items():
        for panel in panels(board):
            for target in panel["targets"]:
                text = target["expr"].replace("$__rate_interval", "1m").replace("$pod", ".*")
                result[f"{name}: {panel['title']} {target['refId']}"] = text
    return result


def known() -> set[str]:
    """Every metric's name, as the generated tables have it; a histogram's parts too."""
    named: set[str] = set()
    for kind, rest in re.findall(r"^\| `(numakin\w+)` \| (\w+)", (DOCS / "metrics.md").read_text(), re.MULTILINE):
        named |= {f"{kind}_{part}" for part in ("bucket", "sum", "count")} if rest == "histogram" else {kind}
    return named


@pytest.mark.parametrize("where", queries())
def test_every_query_asks_for_metrics_that_there_are(where):
    asked = set(re.findall(r"numakin_\w+", queries()[where]))
    assert asked
    assert asked <= known()


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_as_grafana_wants_it(name):
    board = DASHBOARDS[name]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in panels(board):
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}", "another cluster's Prometheus has another uid"
        assert [target["refId"] for target in panel["targets"]] == sorted(
            {target["refId"] for target in panel["targets"]}
        )
    assert board["templating"]["list"][0]["type"] == "datasource"


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_has_a_runbook(rule):
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert anchor == rule["alert"].lower()
    assert f"\n## {rule['alert']}\n" in (MANIFESTS.parent / page).read_text()
    assert rule["labels"]["severity"] in ("info", "warning")


def test_every_runbook_has_an_alert():
    headings = set(re.findall(r"^## (\w+)$", (DOCS / "runbooks.md").read_text(), re.MULTILINE))
    assert headings == {rule["alert"] for rule in ALERTS}


@PROMETHEUS
@pytest.mark.parametrize("cases", ["rules_test.yaml", "rules_over_days_test.yaml"])
def test_the_alerts_come_and_go_as_they_should(tmp_path, cases):
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(RULES))
    shutil.copy(Path(__file__).parent / cases, tmp_path)
    done = subprocess.run(
        ["promtool", "test", "rules", cases], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real one, which has scraped a real extender twice, and has the alerts."""
    folder = tmp_path_factory.mktemp("prometheus")
    with Cluster(tmp_path_factory.mktemp("cluster"), {"node-1": "xeon-8380"}) as cluster:
        runtime = cluster.nodes["node-1"].runtime
        sandbox = runtime.run_pod("cart-0", "shop", "uid-1", OPT_IN, {})
        runtime.run_container(sandbox, "cart", cpu_request=1.0, memory_limit=1 << 30)
        address = free_address()
        (folder / "rules.yaml").write_text(yaml.safe_dump(RULES))
        job = {"job_name": "numakin", "static_configs": [{"targets": [cluster.extender], "labels": {"pod": "x-1"}}]}
        config = {
            "global": {"scrape_interval": "1s"},
            "rule_files": [str(folder / "rules.yaml")],
            "scrape_configs": [job],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        words = [
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={address}",
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(["prometheus", *words], stdout=log, stderr=log)
        try:
            until(lambda: scraped(address), "it has scraped twice")
            yield address
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def scraped(address: str) -> bool:
    try:
        result = answered(address, "count_over_time(numakin_extender_nodes[1m])")
    except OSError:
        return False
    return bool(result) and float(result[0]["value"][1]) >= 2


def answered(address: str, query: str) -> list[dict[str, Any]]:
    url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        rows: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return rows


@PROMETHEUS
def test_a_real_prometheus_takes_every_query(prometheus):
    for where, query in queries().items():
        try:
            answered(prometheus, query)
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{where}: {refused.read().decode()}") from refused


@PROMETHEUS
@pytest.mark.parametrize(
    "where", ["overview.json: Nodes live A", "overview.json: Longest silence A", "overview.json: Held rooms A"]
)
def test_a_running_extender_fills_the_panels(prometheus, where):
    assert answered(prometheus, queries()[where])


@PROMETHEUS
def test_a_running_extender_sets_off_no_alert(prometheus):
    assert answered(prometheus, 'ALERTS{alertstate="firing"}') == []
