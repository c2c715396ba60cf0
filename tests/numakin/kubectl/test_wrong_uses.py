"""Whatever is typed wrong costs one line that says what to do, and an exit code that scripts can tell."""

from __future__ import annotations

import json

import pytest

from tests.numakin.kubectl.asking import ask

USAGE, SILENT = 2, 3

WORDS = {
    "nothing": ((), "no command is given"),
    "a command that is none": (("dance",), "invalid choice: 'dance'"),
    "an option that is none": (("map", "--colour"), "unrecognized arguments: --colour"),
    "an option cut short": (("map", "--names", "x"), "unrecognized arguments: --names"),
    "an option without its value": (("map", "--node"), "expected one argument"),
    "a format that is none": (("map", "-o", "xml"), "invalid choice: 'xml'"),
    "explain nothing": (("explain",), "required: pod NAME"),
    "explain a kind alone": (("explain", "pod/"), "the pod's name is missing"),
    "explain another kind": (("explain", "deploy", "cart"), "one pod can be explained"),
    "explain another kind with a slash": (("explain", "deploy/cart"), "one pod can be explained"),
    "explain two pods": (("explain", "pod", "a", "b"), "one pod can be explained"),
    "evict of every group": (("regroup", "--evict"), "--evict is for one group: name it"),
    "evict without being asked": (("regroup", "shop", "--evict", "--extender", "http://h:1"), "give --yes"),
    "evict past the API server": (("regroup", "shop", "--evict", "--yes", "--extender", "http://h:1"), "leave --extender out"),
    "an address without its scheme": (("map", "--extender", "10.0.0.1:8080"), "must be http://HOST:PORT"),
    "an address of another scheme": (("map", "--extender", "ftp://host"), "must be http://HOST:PORT"),
    "an address without a host": (("map", "--extender", "http://:80"), "must be http://HOST:PORT"),
    "an address with a bad port": (("map", "--extender", "http://host:port"), "must be http://HOST:PORT"),
    "a CA that is not there": (("map", "--extender", "https://h:1", "--extender-ca", "/no"), "--extender-ca /no: No such"),
    "a CA that is none": (("map", "--extender", "https://h:1", "--extender-ca", "/etc/hostname"), "no certificate"),
    "a token that is not there": (("map", "--extender", "http://h:1", "--extender-token", "/no"), "--extender-token /no: No such"),
    "no kubeconfig": (("map",), "no kubeconfig at /nonexistent/.kube/config"),
    "a kubeconfig that is not there": (("map", "--kubeconfig", "/no/config"), "no kubeconfig at /no/config"),
}  # fmt: skip


@pytest.mark.parametrize("use", WORDS)
def test_each_wrong_use_costs_one_line(use):
    words, why = WORDS[use]
    answer = ask(*words)
    assert (answer.code, answer.out) == (USAGE, "")
    (line,) = answer.err.splitlines()
    assert line.startswith("kubectl numakin: ")
    assert why in line


def kubeconfig(**changes: object) -> dict[str, object]:
    good: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    return good | changes


CONFIGS = {
    "empty": ("", "holds no kubeconfig"),
    "not YAML": ("{", "not YAML"),
    "not text": ("\0", "not YAML"),
    "a list": ("[1]", "holds no kubeconfig"),
    "without a current context": (kubeconfig(**{"current-context": ""}), "no current-context"),
    "with a context that is none": (kubeconfig(**{"current-context": "y"}), "it has no context 'y'"),
    "without its cluster": (kubeconfig(clusters=[]), "it has no cluster 'c'"),
    "without its user": (kubeconfig(users=[]), "it has no user 'u'"),
    "with a bad server": (kubeconfig(clusters=[{"name": "c", "cluster": {"server": "nowhere"}}]), "https://HOST:PORT"),
    "with a CA that is no base64": (
        kubeconfig(clusters=[{"name": "c", "cluster": {"server": "https://h", "certificate-authority-data": "%"}}]),
        "is not base64",
    ),
    "with a login that is not there": (
        kubeconfig(users=[{"name": "u", "user": {"exec": {"command": "no-such-login", "apiVersion": "client.authentication.k8s.io/v1"}}}]),
        "'no-such-login' is not there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CONFIGS)
def test_each_bad_kubeconfig_costs_one_line(tmp_path, case):
    content, why = CONFIGS[case]
    path = tmp_path / "config"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    answer = ask("map", "--kubeconfig", str(path))
    assert answer.code == USAGE
    (line,) = answer.err.splitlines()
    assert str(path) in line
    assert why in line


def test_a_context_that_is_none_costs_one_line(tmp_path):
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig()))
    answer = ask("map", "--context", "other", KUBECONFIG=str(path))
    assert answer.code == USAGE
    (line,) = answer.err.splitlines()
    assert "other" in line


@pytest.mark.parametrize("command", [("map",), ("groups",), ("top", "--once"), ("explain", "a")])
def test_an_extender_that_is_not_there_costs_one_line(nothing_there, command):
    answer = ask(*command, "--extender", nothing_there)
    assert answer.code == SILENT
    (line,) = answer.err.splitlines()
    assert f"no answer from the extender {nothing_there}" in line
    assert "refused" in line


def test_an_api_server_that_is_not_there_costs_one_line(tmp_path, nothing_there):
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig(clusters=[{"name": "c", "cluster": {"server": nothing_there}}])))
    answer = ask("map", KUBECONFIG=str(path))
    assert answer.code == SILENT
    (line,) = answer.err.splitlines()
    assert "no answer from the API server" in line


def test_help_comes_with_examples_for_every_command():
    commands = [line.split()[0] for line in ask("--help").lines if line.startswith("    ") and line[4] != " "]
    assert len(commands) >= 4
    for command in commands:
        answer = ask(command, "--help")
        assert answer.code == 0
        assert "examples:" in answer.out, command
