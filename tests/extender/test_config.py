"""Options: flags over environment over file, and a clear word about each that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.config import ExtenderConfig, load
from numakin.process.options import ConfigError


def test_without_anything_the_defaults_hold():
    assert load([], {}) == ExtenderConfig()


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path):
    file = tmp_path / "extender.toml"
    file.write_text('listen = "127.0.0.1:1"\ngrpc-listen = "127.0.0.1:2"\nlease-duration = 30\nrefuse = true\n')
    environment = {"NUMAKIN_CONFIG": str(file), "NUMAKIN_GRPC_LISTEN": "127.0.0.1:20", "NUMAKIN_KUBE": "false"}
    config = load(["--listen", "127.0.0.1:10"], environment)
    assert (config.listen, config.grpc_listen, config.lease_duration) == ("127.0.0.1:10", "127.0.0.1:20", 30)
    assert (config.refuse, config.kube) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--listen", "8080"], "--listen must be HOST:PORT, not '8080'"),
        (["--grpc-listen", "x:99999"], "--grpc-listen must be HOST:PORT, not 'x:99999'"),
        (["--lease-duration", "many"], "--lease-duration: 'many' is not a whole number"),
        (
            ["--listen", "0.0.0.0:8080"],
            "--listen 0.0.0.0:8080: without TLS kube-scheduler's port is for this host alone, such as 127.0.0.1:8080; for others --own-ca, or --tls-cert and --tls-key",
        ),
        (
            ["--web-listen", "0.0.0.0:8082"],
            "--health-listen and --web-listen are both 0.0.0.0:8082: each needs a port of its own",
        ),
        (["--hold", "0.5"], "--hold must be within 1..3600, not 0.5"),
        (["--patience", "61"], "--patience must be within 0..60, not 61"),
        (["--regroup-budget", "101"], "--regroup-budget must be within 0..100, not 101"),
        (
            ["--regroup-hours", "22-6"],
            "--regroup-hours must be hours of the day in UTC, as 22:00-06:00, or nothing for always, not '22-6'",
        ),
        (
            ["--regroup", "evict", "--no-kube"],
            "--regroup evict needs an API server: --no-kube is not for use with it",
        ),
        (["--lease-duration", "0"], "--lease-duration must be within 1..3600, not 0"),
        (["--lease-duration", "9"], "--lease-duration 9 must be over renew-deadline 10"),
        (["--retry-period", "9"], "--renew-deadline 10 must be over 1.2 x retry-period 9"),
        (["--tls-cert", "a.crt"], "--tls-cert and --tls-key belong together"),
        (["--grpc-tls-client-ca", "ca.crt"], "--grpc-tls-cert and --grpc-tls-key belong together"),
        (["--enforcer-account", "enforcer"], "--enforcer-account must be NAMESPACE:NAME, not 'enforcer'"),
        (["--application-label", "part of"], "--application-label must be a label's key, not 'part of'"),
        (["--near-labels", "rack,a b"], "--near-labels must be labels' keys, separated by commas, not 'a b'"),
        (["--near-labels", "a,b,c,d,e"], "--near-labels must be 4 labels at most, not 5"),
        (["--config", "/nowhere.toml"], "config file /nowhere.toml: No such file or directory"),
    ],
)
def test_a_bad_option_is_named_with_what_is_allowed(arguments, text):
    with pytest.raises(ConfigError) as caught:
        load(arguments, {})
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("", ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")),
        (
            "row, example.com/rack,",
            ("row", "example.com/rack", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
        ),
    ],
)
def test_what_is_near_is_told_by_the_operators_labels_and_then_by_zone_and_region(text, near):
    assert load(["--near-labels", text], {}).near == near


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("listn = 'x'", "unknown key 'listn'; known: listen, "),
        ("lease-duration = '8'", "lease-duration: '8' is not a whole number"),
        ("lease-duration = ", "Invalid value"),
    ],
    ids=["unknown", "type", "syntax"],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, text: str):
    file = tmp_path / "extender.toml"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load(["--config", str(file)], {})
    assert str(caught.value).startswith(f"{file}: ")
    assert text in str(caught.value)


def test_help_names_every_option_and_gives_examples(capsys):
    with pytest.raises(SystemExit) as left:
        load(["--help"], {})
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    for name in ExtenderConfig.__dataclass_fields__:
        assert "--" + name.replace("_", "-") in text
