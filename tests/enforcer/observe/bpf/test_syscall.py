import pytest

from enforcer.observe.bpf import loader, syscall
from enforcer.observe.collectors import wakeups


@pytest.mark.bpf
def test_a_tracepoint_that_this_kernel_does_not_have_is_named(bpf_allowed):
    loaded = loader.load(wakeups.request())
    with pytest.raises(OSError, match="this kernel has no tracepoint no_such_tracepoint"):
        syscall.attach_raw_tracepoint(loaded.programs[wakeups.PROGRAM], "no_such_tracepoint")
    loaded.close()
