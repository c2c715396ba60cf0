"""Last in the chain: a node whose traffic can't be seen. Its pods are placed by groups and by others' knowledge."""

from enforcer.observe.bpf.counters import CounterSnapshot

NAME = "none"


class Nothing:
    """Counts nothing."""

    name = NAME

    def attach(self) -> None:
        return

    def detach(self) -> None:
        return

    def drain(self) -> CounterSnapshot:
        return CounterSnapshot()

    def close(self) -> None:
        return
