"""A fault of our own in a verb is an answer, a line in the log, and a count."""

import json

import pytest

from extender.cluster import Cluster
from extender.scheduler.calls import SchedulerCalls
from extender.scheduler.metrics import Metrics
from extender.scheduler.routes import Readiness, create_health_app
from extender.scheduler.verbs import Verbs
from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from tests.extender.running import recorded, running
from tests.metrics import value


class Broken(Cluster):
    """Its scores fail."""

    def prepared(self, *asked, **more):
        raise KeyError("a fault of ours")


@pytest.mark.parametrize(("opted_in", "code"), [(True, "500"), (False, "200")])
def test_a_request_that_could_not_be_answered_is_counted_with_its_code(opted_in, code):
    metrics = Metrics()
    calls = SchedulerCalls(lambda: Verbs(Broken(), metrics, refuse=False), metrics)()
    answer = calls["prioritize"](recorded("basic-nodecache-true.prioritize", opted_in=opted_in))
    assert str(answer.status) == code
    if code == "500":
        assert json.loads(answer.body) == {"error": "a fault of the extender's own; its log says which"}
    page = create_health_app(metrics, Readiness).test_client().get("/metrics").text
    assert value(page, "numakin_extender_requests_total", verb="prioritize", code=code) == 1
    assert value(page, "numakin_extender_request_seconds_count", verb="prioritize") == 1


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_an_empty_body_is_a_bad_request_of_the_first_call_too(verb):
    metrics = Metrics()
    calls = SchedulerCalls(lambda: Verbs(Cluster(), metrics, refuse=False), metrics)()
    assert calls[verb](b"").status == 400


def test_an_api_server_that_is_gone_is_seen_by_the_views_age(tmp_path):
    with ApiServer() as server:
        options = ("--kube", "--kubeconfig", str(server.kubeconfig(tmp_path / "kubeconfig")), "--namespace", "default")
        with running(tmp_path, *options) as extender:

            def age() -> float:
                return value(extender.get("/metrics"), "numakin_extender_watch_age_seconds", resource="pods")

            until(lambda: "pods" not in extender.ask("GET", "/readyz")[1], "the pods are listed")
            server.close()
            until(lambda: age() > 1, "the view is old")
            assert extender.scores(recorded("basic-nodecache-true.prioritize", opted_in=True))
