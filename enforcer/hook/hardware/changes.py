"""Notices that CPUs or memory have gone or come, and reads the machine anew."""

from __future__ import annotations

from pathlib import Path

from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.hardware.node import read_node
from enforcer.machine.errors import MachineError
from enforcer.machine.watch import MachineWatch
from enforcer.settings.config import Config, ConfigError
from numakin.placement.model.errors import PlacementError
from numakin.process.log import Log

log = Log("hook.hardware")

FAULTS = (ConfigError, MachineError, PlacementError, OSError)
"""What keeps us from working on this node; each says why."""


class HardwareChanges:
    """Watches from before the first reading, so that no change is missed."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._watch = MachineWatch(Path(config.sysfs))
        self._refused = ""
        self._taken: NodeFacts | None = None

    def read(self) -> NodeFacts:
        """The node. FAULTS when it can't be worked on."""
        self._taken = read_node(self._config)
        return self._taken

    def changed(self) -> NodeFacts | None:
        """The node where it is another than at the last call. One that can't be worked on is not taken: that is logged
        once, and it is read again at the next call.
        """
        if not self._watch.changed():
            return None
        before = self._taken
        try:
            node = self.read()
        except FAULTS as error:
            if str(error) != self._refused:
                log.error("the machine has changed and can't be taken as it is now", error=error)  # noqa: TRY400
            self._refused = str(error)
            self._watch.forget()
            return None
        self._refused = ""
        same = before is not None and (before.machine, before.reserved) == (node.machine, node.reserved)
        return None if same else node
