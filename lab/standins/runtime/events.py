"""The runtime's events, delivered to plugins, and what becomes of a container by their answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from google.protobuf.message import Message

from lab.standins.runtime.connection import UNKNOWN, StatusError
from lab.standins.runtime.plugins import Plugins
from lab.standins.runtime.records import Container
from numakin.wire import nri_pb2 as nri

# NRI's own words for the fields in its error.
FIELDS = {"cpus": "CPU pinning", "mems": "memory pinning"}


class CriError(Exception):
    """A CRI call failed, as the kubelet would see it."""


class Events:
    """One CRI call's events; every method raises CriError where a plugin answers with an error status."""

    def __init__(self, plugins: Plugins, required: Sequence[str] = ()) -> None:
        """required: the names of plugins without which NRI's default validator lets no container be created."""
        self._plugins, self._required = plugins, required

    def create(self, container: Container) -> tuple[Container, list[nri.ContainerUpdate]]:
        """The container as the plugins adjusted it, and their updates of others; no two may set the same field."""
        claims, updates = Claims(), list[nri.ContainerUpdate]()

        def request() -> nri.CreateContainerRequest:
            return nri.CreateContainerRequest(pod=container.pod.message(), container=container.message())

        for plugin, answer in self.deliver("CreateContainer", request):
            response = nri.CreateContainerResponse.FromString(answer)
            adjusted = response.adjust.linux.resources
            try:
                claims.claim(container.id, adjusted, str(plugin))
                updates += claims.granted(response.update, str(plugin), created=container.id)
            except StatusError as error:
                raise CriError(f"failed to get NRI adjustment for container: {error}") from error
            annotations = {**container.annotations, **response.adjust.annotations}
            container = replace(container.with_resources(adjusted), annotations=annotations)
        self._validate()
        return container, updates

    def _validate(self) -> None:
        """Once all have answered, as the real one does (NRI 0.10)."""
        present = {name.partition("-")[2] for name in self._plugins.names}
        if missing := [name for name in self._required if name not in present]:
            raise CriError(f"validation error: required plugin {', '.join(missing)} not present")

    def pod(self, method: str, request: Message) -> None:
        for _ in self.deliver(method, lambda: request):
            pass

    def container(self, method: str, kind: Callable[..., Message], container: Container) -> None:
        request = kind(pod=container.pod.message(), container=container.message())
        for _ in self.deliver(method, lambda: request):
            pass

    def deliver(self, method: str, request: Callable[[], Message]) -> Iterable[tuple[object, bytes]]:
        """Each plugin's answer in turn; `request()` as it is by then."""
        try:
            yield from self._plugins.deliver(method, request)
        except StatusError as error:
            raise CriError(f"failed to get NRI adjustment for container: {error}") from error


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
