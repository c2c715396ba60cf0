"""As the base manifests install it: TLS by numakin's own certificates, and readers whom the API server knows."""

from __future__ import annotations

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from tests.attack.secured import NAMESPACE, Site, site
from tests.manifests.rendered import files, one
from tests.numakin.kubectl.asking import Told, ask
from tests.numakin.kubectl.installed import add_pod

__all__ = ["site"]

ACCOUNT = "system:serviceaccount:numakin:numakin-viewer"


@pytest.fixture
def server(site: Site) -> ApiServer:
    """With what the manifests have for viewers."""
    api = site.server
    if ("services", NAMESPACE, "numakin-extender", "web") not in api.behind.backends:
        api.create("v1", "services", {"metadata": {"name": "numakin-extender"}}, NAMESPACE)
        api.create("v1", "serviceaccounts", {"metadata": {"name": "numakin-viewer"}}, NAMESPACE)
        api.behind.backends["services", NAMESPACE, "numakin-extender", "web"] = f"https://{site.extender.web}"
        add_pod(api, "numakin-extender", 0, "extender", [], [{"name": "web", "containerPort": 8083}])
        api.behind.backends["pods", NAMESPACE, "numakin-extender-0", "8083"] = f"https://{site.extender.web}"
        api.answers.access.grant(ACCOUNT, one(files(), "ClusterRole", "numakin-reader")["rules"])
    return api


def asked(site: Site, server: ApiServer, token: str, *words: str) -> Told:
    return ask(*words, KUBECONFIG=str(server.kubeconfig(site.folder / "person", token)))


@pytest.mark.parametrize("words", [("map",), ("groups", "-A"), ("top", "-A", "--once")], ids=lambda words: words[0])
def test_a_viewer_reads_by_the_role_that_is_made_for_it(site, server, words):
    viewer = server.grant("viewer", one(files(), "ClusterRole", "numakin-viewer")["rules"])
    received = asked(site, server, viewer, *words)
    assert received.code == 0, received.err


def test_an_enforcer_that_the_extender_has_heard_nothing_of_is_bad_news(site, server):
    server.create_node("deaf")
    server.create_pod("deaf-enforcer", NAMESPACE, nodeName="deaf", serviceAccountName="numakin-enforcer")
    server.create_node("bare")

    def told() -> set[tuple[str, str]]:
        rows = asked(site, server, "admin-token", "doctor", "-o", "json").json["findings"]
        return {(row["grade"], row["text"]) for row in rows}

    unheard = "nothing has come from the enforcers on deaf, which score 0: see the logs of their pods"
    until(lambda: ("bad", unheard) in told(), "the node to be named")
    assert ("note", "no enforcer has reported from bare: they score 0") in told()


def test_a_kube_scheduler_without_its_certificate_is_told_of(site, server):
    with pytest.raises(OSError, match=r"certificate required|reset|EOF"):
        site.ask("POST", "/prioritize", b"{}")

    def told() -> set[str]:
        rows = asked(site, server, "admin-token", "doctor", "-o", "json").json["findings"]
        return {row["text"] for row in rows if row["topic"] == "scheduler"}

    until(lambda: any("somebody was not let in" in text for text in told()), "the refusal to be told")


def test_who_may_use_the_proxy_but_not_the_account_reads_nothing(site, server):
    rules = [{"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"]}]
    received = asked(site, server, server.grant("passer-by", rules), "map")
    assert received.code == 3
    (line,) = received.err.splitlines()
    assert "the extender does not let this user read" in line
    assert "ClusterRole numakin-viewer" in line


def test_an_extender_straight_wants_its_authority_and_a_token(site, server):
    authority, token = site.folder / "ca.crt", site.folder / "token"
    authority.write_text(server.get("v1", "configmaps", "numakin-ca-bundle", NAMESPACE)["data"]["ca.crt"])
    straight = ("map", "--extender", f"https://{site.extender.web}")
    assert "CERTIFICATE_VERIFY_FAILED" in ask(*straight).err
    refused = ask(*straight, "--extender-ca", str(authority))
    assert (refused.code, "does not let this user read" in refused.err) == (3, True)
    token.write_text(server.grant("person", one(files(), "ClusterRole", "numakin-reader")["rules"]))
    answer = ask(*straight, "--extender-ca", str(authority), "--extender-token", str(token))
    assert answer.code == 0, answer.err
