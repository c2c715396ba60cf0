"""The kernel's text formats: any text gives values or a ValueError that says what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enforcer.machine import formats

PARSERS = {
    "number": formats.number,
    "count": formats.count,
    "distances": formats.distances,
    "meminfo": formats.meminfo,
    "zoneinfo": lambda text: formats.high_watermarks(text, 4096),
    "stat": formats.cpu_times,
    "pressure": formats.stall_share,
    "pressure in all": formats.stall_total,
    "numa_stat": lambda text: formats.numa_stat(text, 4096),
}

lines = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.from_regex(r"Node [0-9]+, zone +[A-Za-z0-9]+"),
        st.from_regex(r" +high +[0-9]+"),
        st.from_regex(r"cpu[0-9]+( [0-9]+){1,10}"),
        st.from_regex(r"(Node [0-9] )?(MemTotal|MemFree): +[0-9]+( kB)?"),
        st.from_regex(r"(anon|file|total=[0-9]+)( N[0-9]+=[0-9]+){0,3}"),
        st.from_regex(r"(some|full) avg10=[0-9.]+ avg60=[0-9.]+ avg300=[0-9.]+ total=[0-9]+"),
    ),
    max_size=6,
).map("\n".join)


@pytest.mark.parametrize("parser", PARSERS)
@given(text=lines)
def test_any_text_gives_values_or_a_value_error(parser: str, text: str):
    try:
        PARSERS[parser](text)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either outcome is right; what may not come is another exception


@pytest.mark.parametrize(("text", "value"), [("3\n", 3), ("-1\n", -1), ("  7 ", 7), ("00\n", 0)])
def test_numbers_are_read(text, value):
    assert formats.number(text) == value


@pytest.mark.parametrize("text", ["", "x", "1 2", "0x10", "1.5", "٣", "9" * 30])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match="not a number"):
        formats.number(text)


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("MemTotal: 5 kB", {"MemTotal": 5120}),
        ("Node 0 MemTotal:       5 kB\nNode 0 HugePages_Total:     7\n", {"MemTotal": 5120, "HugePages_Total": 7}),
        ("Node 12 MemTotal: 1 kB\nNode 12 Inactive(file): 2 kB", {"MemTotal": 1024, "Inactive(file)": 2048}),
    ],
)
def test_meminfo_is_in_bytes_of_the_machine_and_of_a_numa_node_alike(text, figures):
    assert formats.meminfo(text) == figures


@pytest.mark.parametrize(
    ("folder", "size"),
    [("hugepages-2048kB", 2 << 20), ("hugepages-1048576kB", 1 << 30), ("hugepages-2M", None), ("nr", None)],
)
def test_the_size_of_huge_pages_is_in_their_folders_name(folder, size):
    assert formats.hugepage_size(folder) == size


V1 = """total=4344 N0=4344
file=187 N0=187
anon=374 N0=374
unevictable=3783 N0=3783
hierarchical_total=467296 N0=467200 N1=96
hierarchical_file=171365 N0=171365
"""
V2 = """anon N0=16777216 N1=4096
file N0=0 N1=8192
kernel_stack N0=16384 N1=0
shmem N0=0 N1=8192
"""


@pytest.mark.parametrize(
    ("text", "by_node"),
    [
        (V1, {0: 467_200 * 4096, 1: 96 * 4096}),
        (V1[: V1.index("hierarchical")], {0: 4344 * 4096}),
        (V2, {0: 16 << 20, 1: 12_288}),
        ("anon N0=1\nfile N0=2\n", {0: 3}),
        ("anon N3=1 N12=5\nfile N3=2 N12=0\n", {3: 3, 12: 5}),
    ],
    ids=["version 1", "an old version 1, without what is below", "version 2", "one NUMA node", "ids with gaps"],
)
def test_a_cgroups_memory_is_in_bytes_by_numa_node(text, by_node):
    """Version 2's kernel memory is left out, as it moves with nobody; shared memory is in `file` already."""
    assert formats.numa_stat(text, 4096) == by_node


@pytest.mark.parametrize("text", ["", "anon N0=1\n", "file N0=1\n", "N0=1\n"])
def test_what_says_nothing_of_memory_is_refused(text):
    with pytest.raises(ValueError, match="neither a total nor anon and file"):
        formats.numa_stat(text, 4096)
