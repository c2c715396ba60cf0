"""Katalyst's annotations: understood of pods that opted in, never an opt-in themselves."""

from __future__ import annotations

import pytest

from numakin.placement.optin.parsing import Cpus, Memory, Pool, Problems, parse, problems

QOS = "katalyst.kubewharf.io/qos_level"
MEMORY = "katalyst.kubewharf.io/memory_enhancement"
GROUP = {"group.numakin.io": "web"}


def test_they_are_not_an_opt_in():
    assert parse("shop", {QOS: "dedicated_cores"}) is None
    assert parse("shop", {QOS: "nonsense"}) is None


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
    annotations = {**GROUP, QOS: level}
    opt_in, result = parse("shop", annotations), problems("shop", annotations)
    assert (opt_in.cpus, opt_in.pool, result) == (cpus, pool, Problems())


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
    annotations = {**GROUP, MEMORY: enhancement}
    opt_in, result = parse("shop", annotations), problems("shop", annotations)
    assert (opt_in.memory, opt_in.alone, result) == (memory, alone, Problems())


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
    annotations = {**GROUP, key: value}
    opt_in, result = parse("shop", annotations), problems("shop", annotations)
    assert opt_in == parse("shop", GROUP)
    assert [(entry.key, entry.allowed) for entry in result.named] == [(key, allowed)]


def test_our_own_keys_beat_them():
    opt_in = parse("shop", {**GROUP, QOS: "reclaimed_cores", "cpus.numakin.io": "exclusive"})
    assert (opt_in.cpus, opt_in.pool) == (Cpus.EXCLUSIVE, Pool.SHARED)
    opt_in = parse("shop", {**GROUP, MEMORY: '{"numa_binding": "true"}', "memory.numakin.io": "prefer"})
    assert opt_in.memory is Memory.PREFER
