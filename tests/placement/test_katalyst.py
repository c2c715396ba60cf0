"""Katalyst's annotations: understood of pods that opted in, never an opt-in themselves."""

from __future__ import annotations

import pytest

from placement.optin import Cpus, Memory, Pool, parse

QOS = "katalyst.kubewharf.io/qos_level"
MEMORY = "katalyst.kubewharf.io/memory_enhancement"
GROUP = {"group.numakin.io": "web"}


def test_they_are_not_an_opt_in():
    assert parse("shop", {QOS: "dedicated_cores"}) == (None, ())
    assert parse("shop", {QOS: "nonsense"}) == (None, ())


@pytest.mark.parametrize(
    ("level", "cpus", "pool"),
    [
        ("dedicated_cores", Cpus.EXCLUSIVE, Pool.SHARED),
        ("shared_cores", Cpus.SHARED, Pool.SHARED),
        ("reclaimed_cores", Cpus.SHARED, Pool.RECLAIMED),
        ("system_cores", Cpus.SHARED, Pool.RESERVED),
    ],
)
def test_each_qos_level_has_its_place(level, cpus, pool):
    opt_in, problems = parse("shop", {**GROUP, QOS: level})
    assert (opt_in.cpus, opt_in.pool, problems) == (cpus, pool, ())


@pytest.mark.parametrize(
    ("enhancement", "memory", "alone"),
    [
        ('{"numa_binding": "true"}', Memory.BIND, False),
        ('{"numa_binding": "true", "numa_exclusive": "true"}', Memory.BIND, True),
        ('{"numa_binding": "false"}', Memory.AUTO, False),
        ('{"rss_overuse_threshold": "0.5"}', Memory.AUTO, False),
        ("{}", Memory.AUTO, False),
    ],
)
def test_memory_enhancements_bind_and_keep_apart(enhancement, memory, alone):
    opt_in, problems = parse("shop", {**GROUP, MEMORY: enhancement})
    assert (opt_in.memory, opt_in.alone, problems) == (memory, alone, ())


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        (QOS, "gold", "dedicated_cores, shared_cores, reclaimed_cores, system_cores"),
        (MEMORY, "numa_binding", "a JSON object"),
        (MEMORY, "[1]", "a JSON object"),
        (MEMORY, "[" * 5000, "a JSON object"),
        (MEMORY, '{"numa_binding": true}', 'numa_binding "true" or "false"'),
        (MEMORY, '{"numa_binding": "yes"}', 'numa_binding "true" or "false"'),
        (MEMORY, '{"numa_exclusive": "true"}', 'numa_exclusive only together with numa_binding "true"'),
    ],
)
def test_what_is_not_understood_is_reported_and_counts_as_absent(key, value, allowed):
    opt_in, problems = parse("shop", {**GROUP, key: value})
    assert opt_in == parse("shop", GROUP)[0]
    assert [(one.key, one.allowed) for one in problems] == [(key, allowed)]


def test_our_own_keys_beat_them():
    opt_in, _ = parse("shop", {**GROUP, QOS: "reclaimed_cores", "cpus.numakin.io": "exclusive"})
    assert (opt_in.cpus, opt_in.pool) == (Cpus.EXCLUSIVE, Pool.SHARED)
    opt_in, _ = parse("shop", {**GROUP, MEMORY: '{"numa_binding": "true"}', "memory.numakin.io": "prefer"})
    assert opt_in.memory is Memory.PREFER
