"""What a real containerd does with a plugin that is late, and that the enforcer's session comes back from it."""

from __future__ import annotations

from queue import Queue

import pytest

from enforcer.nri.handlers import Handlers
from enforcer.nri.session import Stage
from lab.standins.patience import PATIENCE_S, until
from tests.e2e.lab.runtime import RealRuntime
from tests.enforcer.nri.running import Running

pytestmark = pytest.mark.runtime


def test_a_plugin_that_is_late_with_synchronize_is_told_of_pods_again(impatient_runtime: RealRuntime) -> None:
    """containerd 1.7 leaves the socket of such a plugin open and tells it nothing any more; 2.1 closes it."""

    def forgotten() -> int:
        return impatient_runtime.log.read_text(errors="replace").count("failed to synchronize plugin")

    before = forgotten()
    pods: Queue[str] = Queue()
    synchronized: list[int] = []

    def synchronize(*_: object) -> list[object]:
        synchronized.append(1)
        if len(synchronized) == 1:
            until(lambda: forgotten() > before, "the runtime to give the plugin up")
        return []

    handlers = Handlers(synchronize=synchronize, run_pod_sandbox=lambda pod: pods.put(pod.name))
    with Running(impatient_runtime.nri_socket, handlers) as plugin:
        plugin.wait_for(Stage.CONFIGURED, Stage.ENDED, Stage.SYNCHRONIZED)
        assert Stage.SYNCHRONIZED not in plugin.stages[: plugin.stages.index(Stage.ENDED)]
        impatient_runtime.kubelet.run_pod("after")
        assert pods.get(timeout=PATIENCE_S) == "after"
        assert plugin.do(lambda: plugin.plugin.confirmed_s_ago) is not None
