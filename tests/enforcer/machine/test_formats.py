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
}

lines = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.from_regex(r"Node [0-9]+, zone +[A-Za-z0-9]+"),
        st.from_regex(r" +high +[0-9]+"),
        st.from_regex(r"cpu[0-9]+( [0-9]+){1,10}"),
        st.from_regex(r"(Node [0-9] )?(MemTotal|MemFree): +[0-9]+( kB)?"),
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
