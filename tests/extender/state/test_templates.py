"""Pods of another template than their workload's newest are about to be replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.state.pods import OwnerRow, PodRow
from extender.state.templates import ANNOUNCED_S, LAG_S, Templates

OLD, NEW = "1111111111", "2222222222"
NOW = 100.0
WEB = "default/Deployment/web"


def replica(name: str, template: str, node: str = "") -> PodRow:
    labels = {"pod-template-hash": template}
    return PodRow(name, "default", name, node, owner=OwnerRow("Deployment", "web"), labels=labels)


@pytest.fixture
def templates() -> Templates:
    """Of a Deployment with one pod of each template, the newer of which waits for a node."""
    templates = Templates()
    templates.changed(None, replica("old", OLD, "a"), NOW)
    templates.changed(None, replica("new", NEW), NOW)
    return templates


def test_those_of_another_template_than_the_newest_pod_that_was_created_are_replaced(templates: Templates):
    assert templates.replaces(WEB)
    assert [templates.former(replica("any", template)) for template in (OLD, NEW)] == [True, False]


def test_a_pod_that_was_bound_before_it_was_seen_says_nothing_of_what_is_newer(templates: Templates):
    templates.changed(None, replica("older", OLD, "a"), NOW)
    assert templates.former(replica("any", OLD))


def test_an_update_that_is_undone_replaces_the_others(templates: Templates):
    templates.changed(None, replica("again", OLD), NOW)
    assert [templates.former(replica("any", template)) for template in (OLD, NEW)] == [False, True]


def test_one_that_is_undone_before_it_replaced_any_replaces_none(templates: Templates):
    templates.changed(replica("new", NEW), None, NOW)
    assert not templates.replaces(WEB)
    assert not templates.former(replica("any", OLD))


def test_one_that_is_being_deleted_is_there_until_it_has_ended(templates: Templates):
    old = replica("old", OLD, "a")
    templates.changed(old, replace(old, leaving=True), NOW)
    assert templates.replaces(WEB)


def test_once_the_last_one_is_gone_nothing_is_replaced(templates: Templates):
    templates.changed(replica("old", OLD, "a"), None, NOW)
    assert not templates.replaces(WEB)


def test_a_pod_whose_label_is_edited_counts_as_what_it_says_now(templates: Templates):
    templates.changed(replica("old", OLD, "a"), replica("old", NEW, "a"), NOW)
    assert not templates.replaces(WEB)


def test_a_stateful_sets_revision_is_its_template(templates: Templates):
    pods = [
        PodRow(name, "default", name, owner=OwnerRow("StatefulSet", "db"), labels={"controller-revision-hash": name})
        for name in ("db-1", "db-2")
    ]
    for pod in pods:
        templates.changed(None, pod, NOW)
    assert [templates.former(pod) for pod in pods] == [True, False]


def test_pods_without_a_template_replace_nothing(templates: Templates):
    bare = replace(replica("bare", ""), owner=None)
    templates.changed(None, bare, NOW)
    assert not templates.former(bare)
    assert not templates.replaces(bare.workload)


def test_nothing_is_remembered_of_a_workload_without_pods(templates: Templates):
    for row in (replica("old", OLD, "a"), replica("new", NEW)):
        templates.changed(row, None, NOW)
    assert not templates.former(replica("any", OLD))


class TestAnAnnouncement:
    @pytest.fixture
    def announced(self) -> Templates:
        """Of a Deployment of one pod its controller says that it has another template."""
        announced = Templates()
        announced.changed(None, replica("old", OLD, "a"), NOW)
        announced.announced(WEB, NOW + 1)
        return announced

    def test_all_pods_are_replaced_though_none_has_come(self, announced: Templates):
        assert announced.former(replica("old", OLD))
        assert announced.replaced_since(WEB) == NOW + 1

    def test_those_that_come_are_what_was_announced(self, announced: Templates):
        announced.changed(None, replica("new", NEW), NOW + 2)
        assert [announced.former(replica("any", template)) for template in (OLD, NEW)] == [True, False]
        assert announced.replaced_since(WEB) == NOW + 1

    def test_where_none_comes_nothing_is_replaced_after_a_while(self, announced: Templates):
        announced.forget_announced(NOW + ANNOUNCED_S)
        assert announced.replaces(WEB)
        announced.forget_announced(NOW + 1 + ANNOUNCED_S)
        assert not announced.replaces(WEB)

    def test_what_was_replaced_before_still_is_after_a_while(self, templates: Templates):
        templates.announced(WEB, NOW + LAG_S)
        assert templates.former(replica("any", NEW))
        templates.forget_announced(NOW + LAG_S + ANNOUNCED_S)
        assert [templates.former(replica("any", template)) for template in (OLD, NEW)] == [True, False]

    def test_that_an_update_is_undone_that_replaced_none_replaces_nothing_after_a_while(self, templates: Templates):
        templates.announced(WEB, NOW + LAG_S)
        templates.changed(replica("new", NEW), None, NOW + LAG_S)
        templates.forget_announced(NOW + LAG_S + ANNOUNCED_S)
        assert not templates.replaces(WEB)
        assert not templates.former(replica("any", OLD))

    def test_one_more_makes_it_last(self, announced: Templates):
        announced.announced(WEB, NOW + 5)
        announced.forget_announced(NOW + 1 + ANNOUNCED_S)
        assert announced.replaced_since(WEB) == NOW + 5

    def test_it_is_of_no_pods_where_there_are_none(self):
        templates = Templates()
        templates.announced(WEB, NOW)
        assert not templates.replaces(WEB)

    def test_it_may_be_heard_after_the_first_pod_was_seen(self, templates: Templates):
        templates.announced(WEB, NOW + LAG_S / 2)
        assert not templates.former(replica("any", NEW))

    def test_it_is_forgotten_with_the_last_pod(self, announced: Templates):
        announced.changed(replica("old", OLD, "a"), None, NOW + 2)
        announced.forget_announced(NOW + 100)
        assert not announced.former(replica("any", OLD))

    def test_a_copy_knows_it(self, announced: Templates):
        copied = announced.copy()
        copied.forget_announced(NOW + 100)
        assert (announced.replaces(WEB), copied.replaces(WEB)) == (True, False)


def test_a_copy_is_one_of_its_own(templates: Templates):
    copied = templates.copy()
    copied.changed(replica("old", OLD, "a"), None, NOW)
    assert templates.replaces(WEB)
    assert not copied.replaces(WEB)
