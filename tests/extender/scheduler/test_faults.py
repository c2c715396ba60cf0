"""A fault of our own in a verb is an answer, a line in the log, and a count."""

import pytest

from extender.cluster import Cluster
from extender.scheduler.calls import scheduler_calls
from extender.scheduler.metrics import Metrics
from extender.scheduler.routes import Readiness, create_app
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
    calls = scheduler_calls(Verbs(Broken(), metrics, refuse=False), metrics)
    client = create_app(Broken(), metrics, Readiness, calls).test_client()
    answer = client.post("/prioritize", data=recorded("basic-nodecache-true.prioritize", opted_in=opted_in))
    assert str(answer.status_code) == code
    if code == "500":
        assert answer.json == {"error": "a fault of the extender's own; its log says which"}
    page = client.get("/metrics").text
    assert value(page, "numakin_extender_requests_total", verb="prioritize", code=code) == 1
    assert value(page, "numakin_extender_request_seconds_count", verb="prioritize") == 1


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_an_empty_body_is_a_bad_request_of_the_first_call_too(verb):
    metrics = Metrics()
    answer = scheduler_calls(Verbs(Cluster(), metrics, refuse=False), metrics)[verb].at_once(b"")
    assert answer is not None
    assert answer.status == 400


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
