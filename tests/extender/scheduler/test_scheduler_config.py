"""The configurations that we ship name what the extender serves, and don't contradict what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from extender.cluster import Cluster
from extender.config import ExtenderConfig
from extender.scheduler.metrics import Metrics
from extender.scheduler.verbs import Verbs
from extender.serving.limits import KEEPALIVE_S

DIRECTORY = Path(__file__).parents[3] / "scheduler-config"
FILES = sorted(DIRECTORY.glob("*.yaml"))


@pytest.fixture(params=FILES, ids=[file.stem for file in FILES])
def config(request) -> dict:
    return yaml.safe_load(request.param.read_text())


def test_every_verb_is_served(config):
    served = Verbs(Cluster(), Metrics(), refuse=True).table
    (extender,) = config["extenders"]
    verbs = {value for key, value in extender.items() if key.endswith("Verb")}
    assert verbs <= served.keys()


def test_the_extender_can_never_stop_scheduling(config):
    (extender,) = config["extenders"]
    assert extender["ignorable"] is True
    assert extender["nodeCacheCapable"] is True
    assert extender["httpTimeout"] == "1s"


def test_members_can_be_compared_on_all_nodes(config):
    percentages = [config.get("percentageOfNodesToScore")]
    percentages += [profile.get("percentageOfNodesToScore") for profile in config["profiles"]]
    assert 100 in percentages


def test_whoever_does_not_name_the_profile_is_scheduled_as_before():
    config = yaml.safe_load((DIRECTORY / "kube-scheduler-config-profile.yaml").read_text())
    assert "percentageOfNodesToScore" not in config
    assert config["profiles"][0] == {"schedulerName": "default-scheduler"}


def test_a_pod_is_one_call_where_nothing_is_refused():
    """Whatever filters makes kube-scheduler ask twice for each pod of the cluster."""
    verbs = {}
    for file in FILES:
        (extender,) = yaml.safe_load(file.read_text())["extenders"]
        verbs[file.stem] = {key for key in extender if key.endswith("Verb")}
    assert verbs == {
        "kube-scheduler-config": {"prioritizeVerb"},
        "kube-scheduler-config-profile": {"prioritizeVerb"},
        "kube-scheduler-config-strict": {"filterVerb", "prioritizeVerb", "preemptVerb"},
    }


def test_the_port_is_the_extenders_default(config):
    (extender,) = config["extenders"]
    assert extender["urlPrefix"].endswith(":" + ExtenderConfig().listen.rpartition(":")[2])


def test_idle_connections_outlive_kube_schedulers():
    go_idle_timeout = 90
    assert go_idle_timeout < KEEPALIVE_S
