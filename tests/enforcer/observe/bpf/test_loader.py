import sys

import pytest

from enforcer.observe.bpf import loader
from enforcer.observe.bpf.built import HERE
from enforcer.observe.bpf.loader import LoaderFailed, LoadHopeless, LoadRefused, LoadRequest, built_ahead, by_bcc, load
from enforcer.observe.collectors import cgroup_skb, wakeups

NOTHING = LoadRequest("nothing", (), {}, ())


def test_without_any_interpreter_that_has_bcc_each_is_named():
    with pytest.raises(LoadRefused, match=r"no interpreter has bcc \(/no/such/python: .*No such file"):
        by_bcc(NOTHING, ["/no/such/python"])


def test_a_loader_that_can_not_start_is_no_refusal_of_the_kernel(tmp_path):
    """As after a module was renamed: the interpreter ends with a traceback, and nothing was asked."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ImportError: cannot import name' >&2\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(LoaderFailed, match="the loader failed: ImportError: cannot import name"):
        by_bcc(NOTHING, [str(python)])


def test_where_no_process_can_be_started_that_is_the_reason(monkeypatch):
    """As where the node is short of memory or of processes."""
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(LoadRefused, match="No such file"):
        built_ahead(cgroup_skb.request(64))


@pytest.mark.bpf
def test_what_the_compiler_says_is_the_reason(bpf_allowed, bcc, tmp_path):
    broken = tmp_path / "broken.bpf.c"
    broken.write_text("int f(void *ctx) { return undeclared_name; }")
    with pytest.raises(LoadRefused, match="undeclared_name"):
        by_bcc(LoadRequest("broken", [str(broken)], {"f": "raw_tracepoint"}, ()))


@pytest.mark.bpf
def test_an_offset_that_this_kernel_does_not_have_is_all_that_is_said(bpf_allowed):
    request = wakeups.request()
    with pytest.raises(LoadRefused, match=r"^no member sock\.no_such_member$"):
        load(LoadRequest(request.name, request.sources, {}, (), ["sock.no_such_member"]))


@pytest.mark.bpf
def test_what_was_built_ahead_goes_before_what_is_compiled_here(bpf_allowed):
    loaded = load(cgroup_skb.request(64))
    loaded.close()
    assert loaded.how == "built ahead"


@pytest.mark.bpf
def test_after_a_change_of_the_sources_they_are_compiled_here(bpf_allowed, bcc, tmp_path):
    """As for who develops them, before they are built anew."""
    changed = tmp_path / "wakeups.bpf.c"
    changed.write_text((HERE / "wakeups.bpf.c").read_text() + "/* changed */\n")
    request = wakeups.request()
    sources = [*request.sources[:-1], str(changed)]
    loaded = load(LoadRequest(request.name, sources, request.programs, request.maps, request.offsets, request.defines))
    loaded.close()
    assert loaded.how == "compiled here by bcc, since: wakeups was built of other sources"


@pytest.mark.bpf
def test_where_both_ways_fail_both_reasons_are_given(bpf_allowed, monkeypatch):
    monkeypatch.setattr(loader, "WAYS", (built_ahead, lambda request: by_bcc(request, ["/no/such/python"])))
    with pytest.raises(LoadRefused, match=r"no nothing is built for this machine; no interpreter has bcc"):
        load(NOTHING)


def test_who_may_load_nothing_is_not_asked_for_a_compiler(monkeypatch):
    asked = []

    def denied(_request):
        raise LoadHopeless("Operation not permitted")

    monkeypatch.setattr(loader, "WAYS", (denied, asked.append))
    with pytest.raises(LoadRefused, match="not permitted"):
        load(NOTHING)
    assert not asked


def test_each_machine_has_kprobes_of_its_own_and_shares_the_rest():
    kprobes = LoadRequest("k", (), {"f": "kprobe"}, (), switches={"DEEP": 1, "WIDE": 0})
    assert [kprobes.build(machine) for machine in ("x86_64", "aarch64")] == ["k-deep-x86_64", "k-deep-aarch64"]
    assert cgroup_skb.request().build("aarch64") == cgroup_skb.request().build("x86_64") == "cgroup_skb"
