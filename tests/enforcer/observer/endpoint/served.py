"""Whether the enforcer's port is served."""

from collections.abc import Iterator
from contextlib import contextmanager

from enforcer.observer.endpoint.port import App, Port
from lab.standins.patience import PATIENCE_S
from numakin.process.threads import Failure, Threads
from tests.enforcer.running import Enforcer


@contextmanager
def served(enforcer: Enforcer, app: App) -> Iterator[list[Failure]]:
    """At the enforcer's port, by a supervised thread, whose failures are yielded."""
    failures: list[Failure] = []
    port = Port(enforcer.metrics, app)
    thread = Threads(failures.append).thread("metrics port", port.serve, last=port.close)
    thread.start()
    try:
        yield failures
    finally:
        thread.stop(PATIENCE_S)
        assert not thread.alive
