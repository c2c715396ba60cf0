"""What the shell offers: kubectl asks kubectl_complete-numakin, as it does for every plugin."""

from __future__ import annotations

import subprocess
import sys

import pytest

CASES = {
    "the commands": ([""], {"explain", "map", "top", "groups", "plan", "doctor", "release"}, ":4"),
    "a command that was begun": (["re"], {"release"}, ":4"),
    "a kind": (["explain", ""], {"pod"}, ":4"),
    "options": (["map", "--no"], {"--node"}, ":4"),
    "values": (["map", "-o", ""], {"table", "wide", "json", "yaml"}, ":4"),
    "a value that was begun": (["map", "--output", "j"], {"json"}, ":4"),
    "a file": (["plan", "-f", ""], set(), ":0"),
    "a file with a token": (["map", "--extender-token", ""], set(), ":0"),
    "a folder": (["compare", "--sysfs", ""], set(), ":0"),
    "a recording": (["replay", ""], set(), ":0"),
    "a recording's options": (["replay", "--p"], {"--policy"}, ":4"),
    "a flag has no value": (["groups", "-A", "--na"], {"--namespace"}, ":4"),
    "a command after a namespace": (["-n", "shop", "re"], {"release"}, ":4"),
    "a file before the command": (["--kubeconfig", ""], set(), ":0"),
    "nothing": ([], {"map"}, ":4"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_may_come_next_is_offered(case):
    words, wanted, directive = CASES[case]
    command = [sys.executable, "-c", "from numakin.kubectl.completion import main; main()", *words]
    received = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert wanted <= set(received[:-1])
    assert received[-1] == directive
    assert all(entry.startswith(words[-1] if words else "") for entry in received[:-1])
