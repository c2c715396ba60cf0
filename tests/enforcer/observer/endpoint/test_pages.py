"""What the enforcer's port says where there is nothing to show, and to whom it shows nothing."""

from pathlib import Path

import pytest

from enforcer.observer.endpoint.pages import application
from enforcer.observer.process import Observer
from lab.standins.patience import until
from tests.enforcer.running import Enforcer

TRAFFIC = ("/api/v1/traffic", "/api/v1/windows")


@pytest.mark.parametrize("path", TRAFFIC)
def test_traffic_that_nobody_watches_is_unavailable_and_says_why(enforcer: Enforcer, path: str) -> None:
    enforcer.start("--observe", "off")
    until(lambda: enforcer.get("/healthz")[0] == 200, "the port is served")
    assert enforcer.get(path) == (503, "traffic is not watched: not yet, or never with --observe off\n")


def test_an_unknown_page_is_not_found(enforcer: Enforcer) -> None:
    enforcer.start("--observe", "off")
    until(lambda: enforcer.get("/healthz")[0] == 200, "the port is served")
    status, text = enforcer.get("/api/v1/nothing")
    assert status == 404
    assert all(path in text for path in ("/metrics", "/healthz", "/readyz", "/api/v1/traffic"))


@pytest.mark.parametrize("path", TRAFFIC)
@pytest.mark.parametrize(
    ("asking", "status"),
    [
        ("127.0.0.1", 503),
        ("::1", 503),
        ("::ffff:127.0.0.1", 503),
        ("10.244.3.7", 403),
        ("::ffff:10.244.3.7", 403),
        ("fd00::7", 403),
        ("0.0.0.0", 403),
    ],
)
def test_who_talks_to_whom_is_told_to_nobody_elsewhere(tmp_path: Path, path: str, asking: str, status: int) -> None:
    """Any pod may reach the port; metrics, and that there is no traffic to show, it may know."""
    app, answered = application(Observer(tmp_path)), list[str]()
    for page in (path, "/healthz"):
        list(app({"PATH_INFO": page, "REMOTE_ADDR": asking}, lambda status, _headers: answered.append(status)))
    assert [int(line.partition(" ")[0]) for line in answered] == [status, 200]
