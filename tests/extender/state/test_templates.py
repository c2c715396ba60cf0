"""Pods of another template than their workload's newest are about to be replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.state.pods import OwnerRow, PodRow
from extender.state.templates import Templates

OLD, NEW = "1111111111", "2222222222"


def replica(name: str, template: str, node: str = "") -> PodRow:
    labels = {"pod-template-hash": template}
    return PodRow(name, "default", name, node, owner=OwnerRow("Deployment", "web"), labels=labels)


@pytest.fixture
def templates() -> Templates:
    """Of a Deployment with one pod of each template, the newer of which waits for a node."""
    templates = Templates()
    templates.changed(None, replica("old", OLD, "a"))
    templates.changed(None, replica("new", NEW))
    return templates


def test_those_of_another_template_than_the_newest_pod_that_was_created_are_replaced(templates: Templates):
    assert templates.replaces("default/Deployment/web")
    assert [templates.former(replica("any", template)) for template in (OLD, NEW)] == [True, False]


def test_a_pod_that_was_bound_before_it_was_seen_says_nothing_of_what_is_newer(templates: Templates):
    templates.changed(None, replica("older", OLD, "a"))
    assert templates.former(replica("any", OLD))


def test_an_update_that_is_undone_replaces_the_others(templates: Templates):
    templates.changed(None, replica("again", OLD))
    assert [templates.former(replica("any", template)) for template in (OLD, NEW)] == [False, True]


def test_one_that_is_being_deleted_is_there_until_it_has_ended(templates: Templates):
    old = replica("old", OLD, "a")
    templates.changed(old, replace(old, leaving=True))
    assert templates.replaces("default/Deployment/web")


def test_once_the_last_one_is_gone_nothing_is_replaced(templates: Templates):
    templates.changed(replica("old", OLD, "a"), None)
    assert not templates.replaces("default/Deployment/web")


def test_a_pod_whose_label_is_edited_counts_as_what_it_says_now(templates: Templates):
    templates.changed(replica("old", OLD, "a"), replica("old", NEW, "a"))
    assert not templates.replaces("default/Deployment/web")


def test_a_stateful_sets_revision_is_its_template(templates: Templates):
    pods = [
        PodRow(name, "default", name, owner=OwnerRow("StatefulSet", "db"), labels={"controller-revision-hash": name})
        for name in ("db-1", "db-2")
    ]
    for pod in pods:
        templates.changed(None, pod)
    assert [templates.former(pod) for pod in pods] == [True, False]


def test_pods_without_a_template_replace_nothing(templates: Templates):
    bare = replace(replica("bare", ""), owner=None)
    templates.changed(None, bare)
    assert not templates.former(bare)
    assert not templates.replaces(bare.workload)


def test_nothing_is_remembered_of_a_workload_without_pods(templates: Templates):
    for row in (replica("old", OLD, "a"), replica("new", NEW)):
        templates.changed(row, None)
    assert not templates.former(replica("any", OLD))


def test_a_copy_is_one_of_its_own(templates: Templates):
    copied = templates.copy()
    copied.changed(replica("old", OLD, "a"), None)
    assert templates.replaces("default/Deployment/web")
    assert not copied.replaces("default/Deployment/web")
