"""What the doctor says of options that are wrong for this node, and what it names to run."""

from __future__ import annotations

from enforcer.cli.doctor import examine
from enforcer.cli.findings import Finding
from enforcer.settings.config import Config


def findings(topic: str, **options: str) -> list[Finding]:
    config = Config(podresources_socket="off", **options)
    return [found for found in examine(config) if found.topic == topic]


def test_options_with_which_the_enforcer_would_not_start_are_bad() -> None:
    (bad,) = [found for found in findings("NUMA", reserved_cpus="0-9999") if found.grade == "bad"]
    assert bad.text.startswith("with these options the enforcer does not start here: reserved-cpus: CPUs ")


def test_what_it_names_to_run_for_a_cri_socket_is_one_address_in_both_spellings() -> None:
    for spelling in ("unix:///nowhere/cri.sock", "/nowhere/cri.sock"):
        (bad,) = findings("CRI", mode="bypass", cri_socket=spelling)
        assert bad.command == "crictl --runtime-endpoint unix:///nowhere/cri.sock version"
