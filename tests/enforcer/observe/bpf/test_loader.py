import pytest

from enforcer.observe.bpf.loader import LoaderFailed, LoadRefused, LoadRequest, load


def test_without_any_interpreter_that_has_bcc_each_is_named():
    with pytest.raises(LoadRefused, match=r"no interpreter has bcc \(/no/such/python: .*No such file"):
        load(LoadRequest((), {}, ()), ["/no/such/python"])


def test_a_loader_that_can_not_start_is_no_refusal_of_the_kernel(tmp_path):
    """As after a module was renamed: the interpreter ends with a traceback, and nothing was asked."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ImportError: cannot import name' >&2\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(LoaderFailed, match="the loader failed: ImportError: cannot import name"):
        load(LoadRequest((), {}, ()), [str(python)])


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
