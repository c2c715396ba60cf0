"""What somebody spoils or deletes of numakin's own CA comes back as the running replicas know it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from extender.kube.tls.authorities import CA_LIFE, renewed
from extender.kube.tls.own_ca import BUNDLE, CA_SECRET, SCHEDULER_SECRET
from tests.extender.kube.tls.site import NAMESPACE

SPOILT = {
    "empty": lambda _data: {},
    "garbage": lambda data: {**data, "0.crt": b"garbage"},
    "a certificate cut in half": lambda data: {**data, "0.crt": data["0.crt"][:300]},
    "another's key": lambda data: {**data, "0.key": renewed((), datetime.now(UTC))[0].pair.key},
    "no key": lambda data: {"0.crt": data["0.crt"]},
    "other names": lambda data: {"tls.crt": data["0.crt"], "tls.key": data["0.key"]},
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_secret_is_written_again_as_the_running_replica_knows_it(site, spoil):
    good, scheduler = site.secret(), site.secret(SCHEDULER_SECRET)
    site.put(spoil(good))
    site.own.ensure()
    assert site.secret() == good
    assert site.streams()
    assert site.schedules(scheduler)


def test_one_of_two_authorities_that_is_spoilt_comes_back(site):
    site.years_pass(CA_LIFE * 0.7)
    good, scheduler = site.secret(), site.secret(SCHEDULER_SECRET)
    site.put({**good, "0.crt": b"garbage"})
    site.own.ensure()
    assert site.secret() == good
    assert site.schedules(scheduler)
    site.put({"1.crt": good["1.crt"], "1.key": good["1.key"]})
    site.own.ensure()
    assert len(site.authorities()) == 1, "an operator who takes the older one out means it"


@pytest.mark.parametrize(
    ("plural", "name"), [("secrets", CA_SECRET), ("secrets", SCHEDULER_SECRET), ("configmaps", BUNDLE)]
)
def test_what_is_deleted_is_there_again_at_the_next_check(site, plural, name):
    bundle, good = site.bundle(), site.secret()
    site.server.delete("v1", plural, name, NAMESPACE)
    site.own.ensure()
    assert (site.bundle(), site.secret()) == (bundle, good)
    assert site.schedules(site.secret(SCHEDULER_SECRET))
    assert site.streams()


def test_a_deleted_secret_that_no_replica_knows_any_more_is_a_new_authority_which_enforcers_follow(site):
    site.server.delete("v1", "secrets", CA_SECRET, NAMESPACE)
    fresh = site.replica()
    fresh.ensure()
    assert site.copied.read_bytes() != site.bundle()
    site.own.ensure()
    assert not site.streams(), "until the kubelet has brought the bundle"
    site.kubelet()
    assert site.streams()
