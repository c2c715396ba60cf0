"""A real control plane with ten nodes, shared by the tests of this folder; skipped by name where it can't be had."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import pytest

from lab.cluster.binaries import Binaries, NoKubernetes, binaries
from lab.cluster.cluster import Cluster, Terms
from tests import forked
from tests.cluster.workloads import Namespace

TEN_NODES = {f"node-{number}": "epyc-7763-nps2" for number in range(10)}

ANY_ANSWER = "60s"
"""As httpTimeout: where a busy machine delays an answer, kube-scheduler waits for it and does not go on without."""

PATIENT = ("--patience", "20", "--hold", "3600", "--report-timeout", "3600")
"""Options of an extender that waits for its watch on a busy machine too, and believes a report until the next one."""

_numbers = count()


@pytest.fixture(scope="session")
def kubernetes() -> Binaries:
    try:
        return binaries()
    except NoKubernetes as none:
        if os.environ.get("NUMAKIN_REQUIRE_LAB") == "1":
            pytest.fail(f"NUMAKIN_REQUIRE_LAB=1, but there is no real control plane: {none}")
        pytest.skip(f"a real control plane: {none}")


def patient(terms: Terms) -> Terms:
    """With all time that a busy machine may take: no group is split for want of it."""
    return replace(terms, http_timeout=ANY_ANSWER, extender_options=(*PATIENT, *terms.extender_options))


@contextmanager
def up(
    kubernetes: Binaries, terms: Terms, request: pytest.FixtureRequest, *, as_shipped: bool = False
) -> Iterator[Cluster]:
    """A cluster whose logs stay when a test fails meanwhile, and whose kubelets and Service did all that they had to.
    as_shipped: no more patient than its configuration is.
    """
    before = request.session.testsfailed
    terms = replace(terms, begin_extender=forked.extender, begin_enforcer=forked.enforcer)
    with Cluster(kubernetes, terms if as_shipped else patient(terms)) as cluster:
        yield cluster
        cluster.keep = request.session.testsfailed > before
        assert cluster.errors == []


@pytest.fixture(scope="package")
def ten_nodes(kubernetes: Binaries, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with up(kubernetes, Terms(TEN_NODES, extender_options=("--regroup-period", "0.5")), request) as cluster:
        yield cluster


def made(cluster: Cluster) -> Iterator[Namespace]:
    """A namespace of its own for one test."""
    namespace = Namespace(cluster, f"test-{next(_numbers)}")
    namespace.make()
    yield namespace
    namespace.delete()


@pytest.fixture
def namespace(ten_nodes: Cluster) -> Iterator[Namespace]:
    yield from made(ten_nodes)
