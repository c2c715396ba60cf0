import subprocess
import sys

import pytest

from enforcer.observe.bpf.counters import CounterSnapshot
from enforcer.observe.bpf.loader import LoadRefused
from enforcer.observe.collectors import cgroup_skb, chain, inet_diag
from enforcer.observe.collectors.chain import CollectorChoice, CollectorRefusal, Nothing, Sources, choose
from enforcer.observe.collectors.diag_wire import DiagError
from lab.standins.patience import PATIENCE_S

NOWHERE = Sources(None, list)


class Blind(Nothing):
    """Attaches without complaint and sees nothing."""

    name = "blind"
    closed = False

    def close(self):
        self.closed = True


class Once(Nothing):
    """As programs at function exits are in Linux 5.10."""

    attached = 0

    def attach(self):
        self.attached += 1
        if self.attached == 2:
            raise FileNotFoundError(2, "bpf RAW_TRACEPOINT_OPEN: No such file or directory")


def refuse(reason):
    def open_member(_):
        raise LoadRefused(reason)

    return open_member


def test_where_nothing_works_the_collector_counts_nothing_and_the_reasons_are_given():
    choice = choose(NOWHERE, [("a", refuse("no BTF")), ("b", refuse("lockdown"))])
    assert choice.collector.name == "none"
    assert choice.collector.drain() == CounterSnapshot()
    assert choice.refusals == (CollectorRefusal("a", "no BTF"), CollectorRefusal("b", "lockdown"))


def test_a_hook_that_attaches_but_sees_nothing_is_refused_and_closed():
    blind = Blind()
    choice = choose(NOWHERE, [("blind", lambda _: blind)])
    assert choice.refusals == (CollectorRefusal("blind", "of 4099 bytes over loopback it saw 0 sent and 0 received"),)
    assert blind.closed


def test_a_hook_that_can_be_attached_once_alone_is_refused(monkeypatch):
    """The probes are on a share of the time: it would be gone after its first turn."""
    monkeypatch.setattr(chain, "prove", lambda _collector: None)
    choice = choose(NOWHERE, [("once", lambda _: Once()), ("next", lambda _: Nothing())])
    assert [refusal.name for refusal in choice.refusals] == ["once"]


def test_a_kernel_that_refuses_to_list_its_sockets_is_one_that_nothing_works_on(monkeypatch):
    def refused(_netlink, _family):
        raise DiagError(2)

    monkeypatch.setattr(inet_diag, "dump", refused)
    choice = choose(NOWHERE, [(inet_diag.NAME, lambda _: inet_diag.open_collector(list))])
    assert choice.collector.name == "none"
    assert choice.refusals == (CollectorRefusal("inet_diag", "sock_diag: errno 2"),)


def test_a_cgroup_that_is_not_the_root_is_refused_by_name(tmp_path):
    with pytest.raises(LoadRefused, match="is not the root of cgroup v2"):
        chain.open_cgroup_skb(Sources(tmp_path, list))


def test_the_mount_of_cgroup_v2_is_found_among_others(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text("cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n")
    assert str(chain.cgroup_root(mounts)) == "/sys/fs/cgroup/unified"


@pytest.mark.bpf
def test_the_best_hook_that_this_kernel_allows_is_chosen(bpf_allowed):
    choice = choose(Sources(chain.cgroup_root(), list))
    choice.collector.close()
    assert (choice.collector.name, choice.refusals) == (cgroup_skb.NAME, ())


# Chooses with the capabilities that the arguments leave, and prints what.
CHOOSER = """
from enforcer.observe.collectors import chain
print(chain.choose(chain.Sources(chain.cgroup_root(), list)).collector.name)
"""


@pytest.mark.bpf
@pytest.mark.parametrize(
    ("capabilities", "name"),
    [
        (["bpf", "net_admin"], "cgroup_skb"),
        (["bpf", "perfmon"], "socket_tracepoints"),
        (["sys_admin"], "cgroup_skb"),
        (["net_admin"], "none"),
    ],
)
def test_few_capabilities_are_enough(bpf_allowed, capabilities, name):
    """CAP_SYS_ADMIN, which stands for both others, is not among those needed."""
    kept = ",".join(["-all", *(f"+{capability}" for capability in capabilities)])
    command = ["setpriv", "--bounding-set", kept, "--inh-caps", "-all", sys.executable, "-c", CHOOSER]
    assert subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout == name + "\n"


@pytest.mark.bpf
@pytest.mark.parametrize("name", [name for name, _ in chain.MEMBERS])
def test_each_member_counts_or_says_why_not(bpf_allowed, name):
    choice = choose(Sources(chain.cgroup_root(), list), [member for member in chain.MEMBERS if member[0] == name])
    choice.collector.close()
    if choice.collector.name == "none":
        (refusal,) = choice.refusals
        pytest.skip(f"the kernel refuses {name}: {refusal.reason}")
    assert choice == CollectorChoice(choice.collector, ())
