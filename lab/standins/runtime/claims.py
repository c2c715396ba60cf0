"""Who set what, within one request: no two plugins may set the same field of a container."""

from collections.abc import Iterable, Iterator

from lab.standins.runtime.connection import UNKNOWN, StatusError
from numakin.wire import nri_pb2 as nri

# NRI's own words for the fields in its error.
FIELDS = {"cpus": "CPU pinning", "mems": "memory pinning"}


class Claims:
    """The owners of the cpuset fields of containers, while one request goes from plugin to plugin."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], str] = {}

    def granted(
        self, updates: Iterable[nri.ContainerUpdate], plugin: str, created: str
    ) -> Iterator[nri.ContainerUpdate]:
        """Those that are carried out. One that another plugin's is in the way of is left out where it may fail; else it
        raises StatusError, as does one of the container that is being created.
        """
        for update in updates:
            if update.container_id == created:
                raise StatusError(UNKNOWN, f'plugin "{plugin}" asked update of "{created}" during creation')
            try:
                self.claim(update.container_id, update.linux.resources, plugin)
            except StatusError:
                if not update.ignore_failure:
                    raise
            else:
                yield update

    def claim(self, container_id: str, resources: nri.LinuxResources, plugin: str) -> None:
        """Raises StatusError where another plugin has set the same field."""
        for field, words in FIELDS.items():
            if not getattr(resources.cpu, field):
                continue
            owner = self._owners.setdefault((container_id, field), plugin)
            if owner != plugin:
                raise StatusError(UNKNOWN, f'plugins "{plugin}" and "{owner}" both tried to set {words}')
