"""The API server is found by a kubeconfig, by the pod's service account, or not at all."""

import re

import pytest

from extender.kube.config import BadKubeconfig, connect


def test_without_a_word_there_is_no_api_server():
    assert connect("", {}) is None


def test_a_service_host_without_an_account_is_none_either():
    assert connect("", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) is None


def test_a_kubeconfigs_server_and_token_are_used(server, tmp_path):
    api = connect(str(server.kubeconfig(tmp_path / "config")), {})
    assert api.get("/api/v1/pods").json()["kind"] == "PodList"
    assert server.asked[-1].user.name == "admin"
    assert server.asked[-1].headers["user-agent"] == "numakin-extender"


BAD = {
    "none": (None, "No configuration found|Invalid kube-config"),
    "empty": ("", "."),
    "no context": ("apiVersion: v1\nkind: Config\n", "current-context|Expected key"),
    "not YAML": ("{", "."),
}


@pytest.mark.parametrize(("text", "told"), BAD.values(), ids=BAD)
def test_a_bad_kubeconfig_is_named(tmp_path, text, told):
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadKubeconfig, match=f"^kubeconfig {re.escape(str(path))}: .*({told})"):
        connect(str(path), {})
