"""What is gathered from lists and watches of Namespace objects."""

from __future__ import annotations

import pytest

from extender.kube import namespace_settings as namespaces
from extender.kube.namespace_settings import NamespaceRow, NamespaceSettings
from extender.state.pods import Changes
from numakin.placement.namespaces import NamespaceTerms
from numakin.placement.optin.quotas import Quota


def row(name: str, most: int | None = None) -> NamespaceRow:
    return NamespaceRow(name, settings=NamespaceTerms(quota=Quota(most)))


def test_settings_follow_the_objects():
    settings = NamespaceSettings()
    assert settings.after(Changes((row("a", 1), row("b")), whole=True)).quotas == {"a": Quota(1)}
    assert settings.after(Changes((row("b", 2),))).quotas == {"a": Quota(1), "b": Quota(2)}
    assert settings.after(Changes((row("a"),))).quotas == {"b": Quota(2)}
    assert settings.after(Changes(gone=("b",))).quotas == {}


def test_a_new_list_forgets_what_is_no_more_there():
    settings = NamespaceSettings()
    settings.after(Changes((row("a", 1),), whole=True))
    assert settings.after(Changes((row("b", 2),), whole=True)).quotas == {"b": Quota(2)}


def test_too_many_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(namespaces, "NAMESPACES", 2)
    settings = NamespaceSettings()
    rows = tuple(row(name, 1) for name in "cab")
    assert set(settings.after(Changes(rows, whole=True)).settings) == {"a", "b"}
    assert settings.left_out == 1
    settings.after(Changes(gone=("a",)))
    assert settings.left_out == 0
