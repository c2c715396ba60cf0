"""`helm test`'s program against a real extender over TLS; tests/cluster/test_chart.py runs it by Helm."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from extender.check.__main__ import main
from lab.standins.patience import PATIENCE_S
from numakin.process.ports import free_address
from tests.attack.secured import NAMESPACE, Site, site
from tests.manifests.rendered import files, one

__all__ = ["site"]


@pytest.fixture
def given(site: Site, tmp_path: Path) -> dict[str, str]:
    """The options of a pod whose account may read."""
    rules = one(files(), "ClusterRole", "numakin-reader")["rules"]
    (tmp_path / "token").write_text(site.server.grant("viewer", rules) + "\n")
    (tmp_path / "ca.crt").write_text(
        site.server.get("v1", "configmaps", "numakin-ca-bundle", NAMESPACE)["data"]["ca.crt"]
    )
    return {
        "service": site.extender.web,
        "replicas": site.extender.web,
        "ca": str(tmp_path / "ca.crt"),
        "token": str(tmp_path / "token"),
        "patience": "0",
    }


def said(given: dict[str, str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    code = main([f"--{name}={value}" for name, value in given.items()])
    return code, capsys.readouterr().out.splitlines()


def test_an_extender_without_enforcers_is_bad_news(given, capsys):
    code, lines = said(given, capsys)
    assert code == 1
    assert "FAILED: no enforcer has a pod on any node: see its DaemonSet" in lines
    assert any(line.startswith("FAILED: kube-scheduler, which placed this pod") for line in lines)


def test_nobody_there(given, capsys):
    nobody = free_address()
    code, lines = said({**given, "service": nobody}, capsys)
    assert (code, len(lines)) == (3, 1)
    assert lines[0].startswith(f"FAILED: no answer from {nobody}: Connection refused; is a replica ready")


def test_a_certificate_of_another_ca(given, capsys, site):
    (site.folder / "other.crt").write_text(another_ca())
    code, lines = said({**given, "ca": str(site.folder / "other.crt")}, capsys)
    assert (code, len(lines)) == (3, 1)
    assert "has no certificate of numakin's CA for 127.0.0.1: " in lines[0]


def another_ca() -> str:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
               "/dev/null", "-subj", "/CN=other"]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout


def test_no_ca_yet_is_waited_for(given, capsys, tmp_path):
    bundle = tmp_path / "ca.crt"
    content = bundle.read_text()
    bundle.unlink()
    assert said(given, capsys)[1][0].startswith(f"FAILED: no certificates of a CA in {bundle}: the extender has not")
    later = threading.Timer(0.5, bundle.write_text, (content,))
    later.start()
    code, _ = said({**given, "patience": "5"}, capsys)
    later.join()
    assert code == 1, "it was asked again"


def test_an_account_that_may_not_read(given, capsys, site):
    Path(given["token"]).write_text(site.server.grant("nobody", []))
    code, lines = said(given, capsys)
    assert code == 3
    assert "does not let this account read (403): nobody may not list affinitygroups" in lines[0]


def test_a_name_that_leads_nowhere(given, capsys):
    code, lines = said({**given, "replicas": "numakin-extender-replicas.invalid:8083"}, capsys)
    assert code == 3
    assert lines[0].startswith("FAILED: numakin-extender-replicas.invalid has no address: ")


def test_a_wrong_address_is_a_wrong_use(given):
    options = [f"--{name}={value}" for name, value in {**given, "service": "extender"}.items()]
    done = subprocess.run(
        [sys.executable, "-m", "extender.check", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert "'extender' is not HOST:PORT" in done.stderr
