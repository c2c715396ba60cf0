"""numakin's own CA over its years, and when somebody deletes or spoils what it keeps: enforcers and kube-scheduler go on
being served. The ports, the API server's and the dials are real; years pass by giving an authority earlier dates.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from extender.kube.api import ApiError
from extender.kube.tls.authorities import CA_LIFE
from extender.kube.tls.own_ca import BUNDLE, CA_SECRET, SCHEDULER_SECRET, OwnCa
from lab.standins.apiserver import ApiServer, faults
from numakin.wire import report_pb2 as pb
from tests.extender.kube.tls.site import NAMESPACE, REFUSED, Site
from tests.extender.running import whole_report


def test_enforcers_and_kube_scheduler_are_served_through_a_whole_rotation(site):
    """Who has taken over the bundle since the second authority was made notices nothing; nobody has to hurry."""
    with_first, scheduler = site.copied.read_bytes(), site.secret(SCHEDULER_SECRET)
    enforcer = site.enforcer()
    assert site.schedules(scheduler)

    site.years_pass(CA_LIFE * 0.7)
    assert len(site.authorities()) == 2
    assert site.streams(), "with the first authority alone: it still signs"
    assert site.schedules(scheduler)
    site.kubelet()
    assert site.copied.read_bytes() != with_first
    assert site.streams()
    copied_again = site.secret(SCHEDULER_SECRET)

    site.years_pass(CA_LIFE * 0.9)
    assert site.streams(), "with both: the second signs by now"
    assert site.schedules(copied_again), "its certificate is the first's, the port's is the second's"
    site.copied.write_bytes(with_first)
    assert not site.streams(), "who never took over the bundle is refused"

    site.years_pass(CA_LIFE * 1.1)
    assert len(site.authorities()) == 2, "the first has ended: it is kept, and good for nothing"
    assert not site.schedules(scheduler)
    site.kubelet()
    assert site.streams()
    assert site.schedules(site.secret(SCHEDULER_SECRET))
    enforcer.send(report=whole_report(2))
    assert enforcer.next() == pb.ToEnforcer(ack=pb.Ack(generation=2)), "the stream that was open all the time"
    enforcer.close()
    assert site.complaints == []


@pytest.mark.parametrize("off", [timedelta(days=7300), timedelta(days=-7300)], ids=["ahead", "behind"])
def test_a_replica_whose_clock_is_decades_wrong_cuts_nobody_off(site, off):
    """It has the Secrets to itself for a while; what was copied before, and every other replica, go on."""
    scheduler = site.secret(SCHEDULER_SECRET)
    site.replica(off).ensure()
    assert len(site.authorities()) == 2
    assert site.streams(), "an enforcer's connection to the other replica"
    site.own.ensure()
    site.kubelet()
    assert site.streams()
    assert site.schedules(scheduler)
    assert site.schedules(site.secret(SCHEDULER_SECRET))


@pytest.mark.parametrize("off", [timedelta(days=7300), timedelta(days=-7300)], ids=["ahead", "behind"])
def test_when_every_clock_was_decades_wrong_what_was_copied_before_is_served_again(site, off):
    scheduler, bundle = site.secret(SCHEDULER_SECRET), site.copied.read_bytes()
    site.off = off
    site.own.ensure()
    assert not site.streams(), "by the right clock of the enforcer here"
    site.off = timedelta(0)
    site.own.ensure()
    assert site.streams()
    assert site.schedules(scheduler)
    assert site.copied.read_bytes() == bundle


def test_replicas_that_begin_together_have_one_authority(tmp_path):
    with ApiServer() as server:
        site = Site(tmp_path, server)
        server.delete("v1", "secrets", CA_SECRET, NAMESPACE)
        replicas = [site.replica() for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(OwnCa.ensure, replicas))
        (certificate,) = site.authorities()
        assert {Path(replica.files.ca).read_bytes() for replica in replicas} == {certificate}
        site.port.stop()


def test_what_the_api_server_does_not_take_keeps_nobody_from_being_served(site):
    """A rotation is due, and the Secrets can't be changed: they are immutable, or the right was taken away."""
    site.server.order(REFUSED, "update", "secrets", times=100)
    site.years_pass(CA_LIFE * 0.7)
    assert len(site.authorities()) == 1
    assert site.streams()
    site.replica().ensure()


def test_without_kube_scheduler_s_secret_enforcers_get_the_bundle_all_the_same(site):
    site.server.delete("v1", "secrets", SCHEDULER_SECRET, NAMESPACE)
    site.server.delete("v1", "configmaps", BUNDLE, NAMESPACE)
    site.server.order(REFUSED, "create", "secrets", times=100)
    site.own.ensure()
    site.kubelet()
    assert site.streams()


def test_without_an_answer_of_the_api_server_the_last_certificates_serve_on(site):
    site.server.order(faults.Answer(500), times=1000)
    with pytest.raises(ApiError):
        site.own.ensure()
    assert site.streams()
