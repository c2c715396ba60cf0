"""What the enforcer's port says where there is nothing to show."""

import pytest

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
