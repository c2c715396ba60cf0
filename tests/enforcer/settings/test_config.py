"""The enforcer's options: three places, one value, and clear words for what can't be taken."""

import pytest

from enforcer.settings import policy_options
from enforcer.settings.config import Config, ConfigError, merged
from numakin.placement.model.rules import Rules


def test_flags_beat_the_environment_and_the_environment_beats_the_file() -> None:
    text = 'node-name = "from-file"\nextender = "file:1"\nlog-level = "debug"\n'
    environment = {"NUMAKIN_NODE_NAME": "from-environment", "NUMAKIN_EXTENDER": "environment:2", "PATH": "/bin"}
    config = merged({"node_name": "from-flag", "extender": None}, environment, text)
    assert (config.node_name, config.extender, config.log_level) == ("from-flag", "environment:2", "debug")


def test_what_nobody_says_has_its_default() -> None:
    assert merged({}, {}) == Config()


def test_a_configuration_survives_its_way_to_the_observer() -> None:
    config = Config(node_name="n1", reserved_cpus="0-1", window_s=2.5)
    assert Config.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node-nam = 'x'", "drop-in: unknown key 'node-nam'; known: mode, nri-socket, "),
        ("= 1", "drop-in: not TOML: "),
        ("extender = 5", "drop-in: extender: 5 is not text"),
        ("window-s = 'soon'", "drop-in: window-s: 'soon' is not a number"),
        ("window-s = 0", "window-s: 0.0 is not allowed; allowed: 1 to 600 seconds"),
        ("plugin-index = '7'", "plugin-index: '7' is not allowed; allowed: two digits"),
        ("policy-options = 'span'", "policy-options: 'span' is not allowed; allowed: prefer-closest-numa-nodes, max-"),
        ("extender = 'host'", "extender: 'host' is not allowed; allowed: HOST:PORT, up to 5 of them with commas "),
        ("extender = 'a:1,b'", "extender: 'a:1,b' is not allowed; "),
        ("extender = 'a:1,a:2,a:3,a:4,a:5,a:6'", "extender: 'a:1,a:2,a:3,a:4,a:5,a:6' is not allowed; "),
        ("extender-cert = 'x'", "extender-cert and extender-key belong together, and need extender-ca"),
        ("extender-cert = 'x'\nextender-key = 'y'", "extender-cert and extender-key belong together, and need "),
        ("mode = 'auto'", "mode: 'auto' is not allowed; allowed: nri, bypass"),
        (
            "cri-socket = 'run/crio.sock'",
            "cri-socket: 'run/crio.sock' is not allowed; allowed: the path of a unix socket",
        ),
        (
            "vm-runtimes = 'kata; rm'",
            "vm-runtimes: 'kata; rm' is not allowed; allowed: handlers of RuntimeClasses with ",
        ),
        ("log-level = 'loud'", "log-level: 'loud' is not allowed; allowed: debug, info, warning, error"),
        ("reserved-cpus = '3-1'", "reserved-cpus: '3-1' is not a list of ids: 3-1 runs backwards"),
    ],
)
def test_a_bad_option_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        merged({}, {}, text, "drop-in")
    assert str(refused.value).startswith(message)


def test_a_bad_environment_variable_is_named() -> None:
    with pytest.raises(ConfigError, match="environment variable NUMAKIN_WINDOW_S: 'x' is not a number"):
        merged({}, {"NUMAKIN_WINDOW_S": "x"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Rules()),
        ("prefer-closest-numa-nodes=false", Rules(prefer_closest_numa_nodes=False)),
        ("max-allowable-numa-nodes=12,align-by-socket=true", Rules(max_allowable_numa_nodes=12, align_by_socket=True)),
        ("distribute-cpus-across-numa", Rules(distribute_cpus_across_numa=True)),
        ("distribute-cpus-across-cores", Rules(distribute_cpus_across_cores=True)),
        ("shared-pool=all,span=cache", Rules(everyone=True, within_caches=True)),
        ("max-exclusive-cpus-per-namespace=0", Rules(max_exclusive_cpus_per_namespace=0)),
    ],
)
def test_policy_options_are_what_they_say(text: str, expected: Rules) -> None:
    assert policy_options.rules(Config(policy_options=text).policy_options) == expected
    assert not policy_options.within_others(text)
    assert policy_options.within_others(f"within-others,{text}")
