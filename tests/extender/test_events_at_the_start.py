"""What was wrong before the extender came is told by Events all the same, though no replica leads as it first lists all."""

from __future__ import annotations

from pathlib import Path

from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import Answer
from lab.standins.patience import until
from tests.extender.group_objects import DEFINITION, pod
from tests.extender.running import running


def test_an_annotation_that_does_not_count_is_told_of_by_who_then_leads(tmp_path: Path):
    with ApiServer() as server:
        server.define(DEFINITION)
        uid = pod(server, "web-0", memory="lots")["metadata"]["uid"]
        server.order(Answer(500), "create", "leases", times=2)
        options = ("--kubeconfig", str(server.kubeconfig(tmp_path / "kubeconfig")), "--namespace", "default")
        with running(tmp_path, "--kube", *options, "--retry-period", "0.2") as extender:
            until(lambda: "numakin_extender_leading 1.0" in extender.get("/metrics"), "it leads")
            server.wait_for("asked", 1, verb="create", resource="events")
    (sent,) = [asked for asked in server.asked if (asked.verb, asked.kind.plural) == ("create", "events")]
    assert uid in sent.body.decode()
    assert "NumaAnnotationIgnored" in sent.body.decode()
