import pytest

from enforcer.observe.bpf.loader import LoadRefused, LoadRequest, load


def test_without_any_interpreter_that_has_bcc_each_is_named():
    with pytest.raises(LoadRefused, match=r"no interpreter has bcc \(/no/such/python: .*No such file"):
        load(LoadRequest((), {}, ()), ["/no/such/python"])


@pytest.mark.bpf
def test_what_the_compiler_says_is_the_reason(bpf_allowed, tmp_path):
    broken = tmp_path / "broken.bpf.c"
    broken.write_text("int f(void *ctx) { return undeclared_name; }")
    with pytest.raises(LoadRefused, match="undeclared_name"):
        load(LoadRequest([str(broken)], {"f": "raw_tracepoint"}, ()))


@pytest.mark.bpf
def test_an_offset_that_this_kernel_does_not_have_is_named(bpf_allowed):
    with pytest.raises(LoadRefused, match=r"no member sock\.no_such_member"):
        load(LoadRequest((), {}, (), ["sock.no_such_member"]))
