"""Pods with resources of their own (`spec.resources`) in the extender: what it predicts, and what it sends of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.reports.outgoing import expect
from extender.scoring.predict import predict, wanted
from extender.state.pods import Changes, ContainerRow, PodRow
from extender.views.explain import explain
from numakin.placement.decide.decide import Kin
from numakin.placement.model.demand import MOST_CPUS, PodBudget
from numakin.placement.state.occupancy import Occupancy
from tests.extender.machines import pod
from tests.extender.running import machine
from tests.extender.told import tell

ASKS_NOTHING = (ContainerRow("app"), ContainerRow("log"))
DB = ContainerRow("db", {"cpu": "2"}, {"cpu": "2"})


def budgeted(cpu: str, *containers: ContainerRow, requests_alone: bool = False, **keys: str) -> PodRow:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    row = replace(pod("p", **keys), containers=containers or ASKS_NOTHING, requests=amounts)
    return row if requests_alone else replace(row, limits=amounts)


@pytest.mark.parametrize(
    ("row", "budget"),
    [
        (budgeted("4"), PodBudget(4)),
        (budgeted("700m", requests_alone=True), PodBudget(1)),
        (budgeted("4", DB, *ASKS_NOTHING), PodBudget(4, (("db", 2),))),
        (budgeted("4", replace(DB, init=True), *ASKS_NOTHING), PodBudget(4)),
        (budgeted("4", replace(DB, limits={}), *ASKS_NOTHING), PodBudget(4)),
        (budgeted("4", replace(DB, requests={"cpu": "1500m"}, limits={"cpu": "1500m"})), PodBudget(4)),
        (replace(budgeted("2", DB, requests_alone=True), limits={"memory": "1Gi"}), None),
        (pod("p"), None),
    ],
    ids=[
        "shared by all",
        "requests alone",
        "whole CPUs of its own",
        "of an init container, which is gone before",
        "without a limit",
        "not whole",
        "memory alone, and the sum that the API server fills in",
        "none",
    ],
)
def test_the_budget_and_who_has_slices_of_it(row: PodRow, budget: PodBudget | None):
    assert row.budget == budget


def test_exclusive_cpus_are_predicted_as_one_set():
    want = wanted(budgeted("4", DB, *ASKS_NOTHING, cpus="exclusive"))
    assert want is not None
    predicted = predict(machine(), Occupancy(), want, Kin())
    assert [str(decision.exclusive) for decision in predicted.decisions] == ["0-1", "2-3", "2-3"]
    assert sum(reservation.demand.cpu_milli for reservation in predicted.reservations) == 4000


def test_a_pod_whose_containers_ask_for_nothing_takes_the_room_of_its_budget(cluster: Cluster):
    tell(cluster, "a")
    want = cluster.wanted(budgeted("6"))
    assert want is not None
    cluster.score(want, ["a"])
    view = cluster.view("a")
    assert view is not None
    assert sum(view.occupancy.cpu_load(view.machine).values()) == 6000


def test_its_enforcer_is_sent_that_it_has_a_budget_and_whose_slices_there_are(cluster: Cluster):
    tell(cluster, "a")
    (nomination,) = cluster.apply_pods(Changes(rows=(replace(budgeted("4", DB, *ASKS_NOTHING), node="a"),)))
    sent = expect(nomination).expect
    assert (sent.budget, sent.pod_demand.cpu_milli) == (True, 4000)
    assert [(container.name, container.slice) for container in sent.containers] == [("db", 2), ("app", 0), ("log", 0)]


def test_more_cpus_than_a_message_can_say_are_sent_as_more_than_any_node_has(cluster: Cluster):
    """The API server takes 5G CPUs, and a pod may name its node itself."""
    tell(cluster, "a")
    row = budgeted("6G", replace(DB, requests={"cpu": "5G"}, limits={"cpu": "5G"}))
    (nomination,) = cluster.apply_pods(Changes(rows=(replace(row, node="a"),)))
    (container,) = expect(nomination).expect.containers
    assert container.slice == MOST_CPUS


def test_explain_names_the_budget(cluster: Cluster):
    tell(cluster, "a")
    want = cluster.wanted(budgeted("4", cpus="exclusive"))
    assert want is not None
    cluster.score(want, ["a"])
    answer = explain(cluster, "default", "p")
    assert answer is not None
    reasons = answer["scored"]["nodes"][0]["reasons"]
    assert "pod's budget 4 CPUs: it shares what its containers with whole CPUs of their own leave" in reasons
