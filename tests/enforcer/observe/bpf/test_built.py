"""What is shipped of the BPF programs is what their sources say, and counts what bcc's own compilation counts."""

import json
import platform
import sys

import pytest

from enforcer.observe.bpf import built, loader
from enforcer.observe.bpf.built import NotBuilt, linked, read
from enforcer.observe.bpf.loader import LoadRefused, LoadRequest
from enforcer.observe.collectors import cgroup_skb, socket_tracepoints, unix_sockets, wakeups
from tests.enforcer.observe.conftest import refused
from tests.enforcer.observe.observe_lab import cgroup_root, flows
from tools.reference import programs

BUILDS = [pytest.param(request, machine, id=name) for name, (request, machine) in programs.builds().items()]
HERE = [pytest.param(request, id=request.build(platform.machine())) for request in programs.REQUESTS]

REQUESTS, REQUEST, REPLY = 23, 101, 1009

EXIT_WITHOUT_A_RESULT = "9500000000000000"
ADD_ZERO, LOAD_ZERO = "0701000000000000", "1801000000000000" + 16 * "0"


def program(*instructions, numbers=None, maps=None):
    return {"instructions": instructions, "numbers": numbers or {}, "maps": maps or {}}


def test_every_program_is_shipped_as_the_sources_are():
    """If not: make programs, as root where bcc is."""
    assert programs.stale() == []


@pytest.mark.parametrize(("wanted", "machine"), BUILDS)
def test_each_has_all_programs_maps_and_numbers_of_its_request(wanted, machine):
    shipped = read(wanted.build(machine), wanted.paths)
    numbers = {*wanted.defines, *built.named(dict.fromkeys(wanted.offsets, 0))}
    assert shipped["programs"].keys() == wanted.programs.keys()
    assert shipped["maps"].keys() >= set(wanted.maps)
    assert {map_["entries"] for map_ in shipped["maps"].values() if isinstance(map_["entries"], str)} <= numbers
    used = {name for each in shipped["programs"].values() for terms in each["numbers"].values() for name in terms}
    assert used <= numbers
    assert used >= set(built.named(dict.fromkeys(wanted.offsets, 0)))


def test_a_number_is_added_to_what_is_there_with_its_factor():
    code = linked(
        program(ADD_ZERO, "0701000005000000", numbers={"0": {"A": 1}, "1": {"A": -1, "B": 2}}), {"A": 3, "B": 40}, {}
    )
    assert code.hex() == "0701000003000000" + "0701000052000000"


def test_a_map_is_put_in_by_its_descriptor():
    assert linked(program(LOAD_ZERO, maps={"0": "m"}), {}, {"m": 9}).hex() == "1811000009000000" + 16 * "0"


def test_an_inode_with_its_highest_bit_set_is_no_negative_number():
    code = linked(program(LOAD_ZERO, numbers={"0": {"INODE": 1}}), {"INODE": 0xF0000001}, {})
    assert code.hex() == "18010000010000f0" + 16 * "0"


def test_on_a_machine_of_the_other_byte_order_nothing_is_built(monkeypatch):
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(NotBuilt, match="little-endian"):
        read("wakeups", wakeups.request().paths)


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """Puts a build among those that are shipped, by the name of `wakeups`."""
    monkeypatch.setattr(built, "BUILT", tmp_path)

    def put(instructions, maps=None):
        text = {"sources": built.digest([]), "licence": "GPL", "maps": maps or {}}
        text["programs"] = {"f": program(*instructions)}
        (tmp_path / "f.json").write_text(json.dumps(text))
        request = LoadRequest("f", (), {"f": "raw_tracepoint"}, list(maps or ()))
        return json.loads(request.as_json(compiled=False))

    return put


@pytest.mark.bpf
def test_the_verifier_s_own_words_are_the_reason(bpf_allowed, shipped):
    with pytest.raises(OSError, match="R0 !read_ok"):
        built.load(shipped([EXIT_WITHOUT_A_RESULT]))


@pytest.mark.bpf
@pytest.mark.parametrize("wanted", HERE)
def test_the_kernel_takes_what_is_shipped(bpf_allowed, wanted):
    try:
        loader.built_ahead(wanted).close()
    except LoadRefused as error:
        if not wanted.name.startswith("fexit"):
            raise
        refused(error)


@pytest.mark.bpf
def test_a_map_has_as_many_entries_as_were_asked_for(bpf_allowed, lab, pods, monkeypatch):
    monkeypatch.setattr(loader, "WAYS", (loader.built_ahead,))
    collector = cgroup_skb.open_collector(lab.root.path, edges=3)
    collector.attach()
    for port in range(5001, 5006):
        lab.serve("tcp", "10.87.0.2", port, REQUEST, REPLY, **pods["server"])
        lab.ask("tcp", "10.87.0.2", port, REQUEST, REPLY, 1, **pods["client"])
    snapshot = collector.drain()
    collector.close()
    assert len(snapshot.counters) == 3
    assert snapshot.missed.full_messages > 0


@pytest.mark.bpf
@pytest.mark.parametrize(
    "opener",
    [lambda: cgroup_skb.open_collector(cgroup_root()), socket_tracepoints.open_collector],
    ids=["cgroup_skb", "socket_tracepoints"],
)
def test_what_is_shipped_counts_what_bcc_makes_of_the_sources_counts(bpf_allowed, bcc, lab, pods, monkeypatch, opener):
    """Both are attached and see the same packets, with resent ones among them."""
    collectors = []
    for way in (loader.built_ahead, loader.by_bcc):
        monkeypatch.setattr(loader, "WAYS", (way,))
        collectors.append(opener())
    for collector in collectors:
        collector.attach()
    for kind, address, port in (("tcp", "10.87.0.2", 5003), ("udp", "fd87::2", 5004), ("tcp", "fd87::2", 60101)):
        lab.serve(kind, address, port, REQUEST, REPLY, **pods["server"])
        lab.ask(kind, address, port, REQUEST, REPLY, REQUESTS, **pods["client"])
    for collector in collectors:
        collector.detach()
    shipped, compiled = (flows(collector.drain(), pods) for collector in collectors)
    for collector in collectors:
        collector.close()
    assert len(shipped) == 6
    assert shipped == compiled


@pytest.mark.bpf
@pytest.mark.parametrize(
    "wanted", [cgroup_skb.request(), unix_sockets.request(), wakeups.request()], ids=lambda request: request.name
)
def test_built_anew_by_the_same_compiler_it_is_the_same_to_the_bit(bpf_allowed, bcc, wanted):
    """Another version of bcc makes other instructions, but the same maps."""
    machine = platform.machine()
    anew, shipped = programs.build(wanted, machine), read(wanted.build(machine), wanted.paths)
    if anew["compiler"] == shipped["compiler"]:
        assert anew == shipped
    else:
        assert anew["maps"] == shipped["maps"]


@pytest.mark.bpf
@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("ctx->args[0] == OFFSET_sock_x", "takes no such number"),
        ("*(u64 *)(ctx->args[0] + OFFSET_sock_x / 3)", "not multiplied by a whole number"),
    ],
)
def test_what_no_loader_could_put_in_is_refused_when_it_is_built(bpf_allowed, bcc, tmp_path, expression, says):
    source = tmp_path / "odd.bpf.c"
    source.write_text(f"int f(struct bpf_raw_tracepoint_args *ctx) {{ return {expression}; }}")
    request = LoadRequest("odd", [str(source)], {"f": "raw_tracepoint"}, (), ["sock.x"])
    with pytest.raises(programs.Unpredictable, match=says):
        programs.build(request, platform.machine())
