"""An embedded NRI runtime: a container runtime that runs nothing, but speaks NRI over a real unix socket as containerd
does, and keeps a record of where every container would be.

It holds to the real one's rules: one lock around every event, and another one that an update out of turn takes in the
wrong order (`Locks`); a plugin that lets a deadline pass or breaks the wire is closed and the container starts without
it; an error status fails the CRI call; no two plugins may set the same field of a container; none hears of a start that
fails. What CRI-O does its own way is in `manners`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from lab.standins.cri.cgroups import Cgroups
from lab.standins.patience import PATIENCE_S
from lab.standins.runtime import framing
from lab.standins.runtime.attached import Terms
from lab.standins.runtime.connection import UNKNOWN, StatusError
from lab.standins.runtime.events import CriError, Events
from lab.standins.runtime.locks import Locks
from lab.standins.runtime.manners import manner_of
from lab.standins.runtime.plugins import Plugins
from lab.standins.runtime.records import Container, Pod, pod_resources_of, resources_of
from lab.standins.runtime.versions import ALL_EVENTS, VERSIONS
from numakin.wire import nri_pb2 as nri

TIMEOUT_S = 60.0
"""For a registration, and for an answer. containerd gives 5 s and 2 s, which a plugin on a busy machine may exceed: who
wants one to be late sets its own.
"""

CRI_TIMEOUT_S = 5.0
"""Of a CRI call that waits for a lock; the kubelet's is two minutes."""


class Runtime:
    """Use as a context manager, or start() and stop(); pods and containers outlive a restart, as containerd's do.

    `nri_version` is a key of VERSIONS, `version` what the runtime calls its own. Without a `socket_path` plugins can
    only be launched. `refuse_registration` is the reason that every plugin gets; `mute`: no plugin ever gets a message.
    `required_plugins`: by name, those of its default validator (NRI 0.10). `cgroups`: where it makes its containers'
    cgroups, from their start to their end.
    Methods may be called from any thread.
    """

    def __init__(
        self,
        socket_path: str | Path | None = None,
        *,
        nri_version: str = "0.8.0",
        name: str = "containerd",
        version: str = "",
        registration_timeout_s: float = TIMEOUT_S,
        request_timeout_s: float = TIMEOUT_S,
        max_message: int = framing.MAX_MESSAGE,
        refuse_registration: str = "",
        mute: bool = False,
        cgroups: Cgroups | None = None,
        cri_timeout_s: float = CRI_TIMEOUT_S,
        required_plugins: Sequence[str] = (),
    ) -> None:
        played = VERSIONS[nri_version]
        self._terms = Terms(
            version=played,
            name=name,
            runtime_version=version or played.containerd,
            registration_timeout_s=registration_timeout_s,
            request_timeout_s=request_timeout_s,
            max_message=max_message,
            refuse_registration=refuse_registration,
            mute=mute,
        )
        self.nri_version = nri_version
        self._manner = manner_of(name, played)
        self._path = str(socket_path) if socket_path else ""
        self._locks = Locks(lets_go=played.lets_go_while_updating, deadline_s=cri_timeout_s)
        self._lock = self._locks.runtime
        self._pods: dict[str, Pod] = {}
        self._containers: dict[str, Container] = {}
        self._next_pid = 1000
        self._cgroups = cgroups
        self.fail_updates = False  # as when runc can't write a cgroup
        self.refused: set[str] = set()  # the containers whose cpuset the kernel takes no more
        self._awaited = 0  # plugins that a wait was for
        self.plugins = Plugins(self._terms, self._locks, self._snapshot, self._apply, self._unsolicited)
        self._events = Events(self.plugins, required_plugins)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        with self._lock:
            self._pods = {key: replace(pod, recovered=True) for key, pod in self._pods.items()}
        if self._path:
            self.plugins.listen(self._path)

    def stop(self) -> None:
        """Ends every connection without a message, as containerd does on SIGTERM."""
        self.plugins.close()

    def launch(self, program: str | Path, index: str, name: str, config: str = "") -> None:
        """Starts a pre-installed plugin, and returns when it is synchronized or given up (see plugins.notes)."""
        self.plugins.launch(Path(program), index, name, config)

    @property
    def unsolicited(self) -> int:
        """UpdateContainers so far."""
        return self._locks.updates

    @property
    def hung(self) -> bool:
        """Whether an update out of turn has met an event, and both wait for each other for good."""
        return self._locks.hung

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Meanwhile every other thread's request to the runtime waits, as during a CRI call that takes long."""
        with self._lock:
            yield

    def wait_for_plugin(self, timeout_s: float = PATIENCE_S) -> None:
        """Returns when a plugin is synchronized that no wait before was for. Raises TimeoutError.

        One that was there before, and has ended without the runtime having seen it yet, is not taken for the next.
        """
        if not self.plugins.wait_beyond(self._awaited, timeout_s):
            raise TimeoutError(f"no plugin within {timeout_s:g} s; notes: {self.plugins.notes}")
        self._awaited = self.plugins.synchronized

    @property
    def pods(self) -> dict[str, Pod]:
        with self._lock:
            return dict(self._pods)

    @property
    def containers(self) -> dict[str, Container]:
        with self._lock:
            return dict(self._containers)

    def run_pod(
        self,
        name: str,
        namespace: str = "default",
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        qos: str = "burstable",
        host_network: bool = False,
        cpu_request: float = 0.0,
        cpu_limit: float = 0.0,
        memory_limit: int = 0,
    ) -> Pod:
        """A running pod sandbox; cpu_request, cpu_limit, memory_limit: as `Pod` has them. Raises CriError."""
        pod = Pod(name, namespace, uid or str(uuid4()), annotations or {}, labels or {}, qos, host_network)
        pod = replace(pod, cpu_request=cpu_request, cpu_limit=cpu_limit, memory_limit=memory_limit)
        return self._run(replace(pod, manner=self._manner))

    def run_static_pod(self, name: str, node: str, annotations: Mapping[str, str], **more: Any) -> Pod:
        """As the kubelet runs one of its own manifests: named after the node too, and its uid is a hash, which the
        mirror pod at the API server carries in an annotation.
        """
        hashed = md5(f"{name} of {node}".encode(), usedforsecurity=False).hexdigest()
        config = {"kubernetes.io/config.hash": hashed, "kubernetes.io/config.source": "file"}
        return self.run_pod(f"{name}-{node}", uid=hashed, annotations={**annotations, **config}, **more)

    def _run(self, pod: Pod) -> Pod:
        with self._lock:
            self._pods[pod.id] = pod
            try:
                self._events.pod("RunPodSandbox", nri.RunPodSandboxRequest(pod=pod.message()))
            except CriError:
                del self._pods[pod.id]
                raise
        return pod

    def resize_pod(self, pod: Pod, cpu_request: float, cpu_limit: float = 0.0, memory_limit: int = 0) -> Pod:
        """CRI's UpdatePodSandboxResources, which the kubelet calls when a pod was resized in place: plugins hear of it
        from NRI 0.10 on, before the sandbox has it.
        """
        with self._lock:
            before = self._pods[pod.id]
            after = replace(before, cpu_request=cpu_request, cpu_limit=cpu_limit, memory_limit=memory_limit)
            request = nri.UpdatePodSandboxRequest(
                pod=before.message(), linux_resources=pod_resources_of(cpu_request, cpu_limit, memory_limit)
            )
            if self._terms.version.valid_events == ALL_EVENTS:
                for _ in self._events.deliver("UpdatePodSandbox", lambda: request):
                    pass
            self._pods[pod.id] = after
        return after

    def stop_pod(self, pod: Pod) -> None:
        """Its containers must have been stopped."""
        with self._lock:
            self._pods[pod.id] = replace(self._pods[pod.id], stopped=True)
            if self._tells_end_of(self._pods[pod.id]):
                self._events.pod("StopPodSandbox", nri.StopPodSandboxRequest(pod=self._pods[pod.id].message()))

    def remove_pod(self, pod: Pod) -> None:
        """Stopped first if it was not, its containers removed, as the kubelet does it."""
        with self._lock:
            for container in [container for container in self._containers.values() if container.pod.id == pod.id]:
                self.remove_container(container)
            if not self._pods[pod.id].stopped:
                self.stop_pod(pod)
            if self._tells_end_of(self._pods.pop(pod.id)):
                self._events.pod("RemovePodSandbox", nri.RemovePodSandboxRequest(pod=pod.stripped_message()))

    def _tells_end_of(self, pod: Pod) -> bool:
        return self._manner.tells_end_of_recovered or not pod.recovered

    def create_container(
        self,
        pod: Pod,
        name: str,
        *,
        cpu_request: float = 0.0,
        cpu_limit: float = 0.0,
        memory_limit: int = 0,
        cpus: str = "",
        mems: str = "",
        annotations: Mapping[str, str] | None = None,
        env: Iterable[str] = (),
        meanwhile: Callable[[], None] = lambda: None,
        fails: str = "",
    ) -> Container:
        """A created container with what the plugins made of it. `cpus`, `mems`: what another owner of the cpuset
        (the kubelet's static policy) gives it from the start. meanwhile: called when the plugins were asked and the
        container is listed nowhere yet, as containerd's are for a moment. fails: why the OCI runtime can't create it;
        CRI-O has it look at the creation whether programs and mounts are there. Raises CriError.
        """
        resources = resources_of(cpu_request, cpu_limit, memory_limit)
        resources.cpu.cpus, resources.cpu.mems = cpus, mems
        made = Container(name, self._pods.get(pod.id, pod), resources, annotations or {}, tuple(env))
        with self._lock:
            try:
                container, updates = self._events.create(made)
                self._apply(updates)
                _create(fails)
            except CriError:
                self._undo(made)
                raise
        meanwhile()
        with self._lock:
            if self._manner.pid_from_creation:
                container = replace(container, pid=self._new_pid())
            self._containers[container.id] = container
            self._events.container("PostCreateContainer", nri.PostCreateContainerRequest, container)
        return container

    def _undo(self, container: Container) -> None:
        """As containerd takes back towards plugins what failed: by its id alone."""
        if not self._manner.undoes_creations:
            return
        nameless = replace(container, name="")
        request = nri.StopContainerRequest(pod=container.pod.message(), container=nameless.message())
        for _, answer in self._events.deliver("StopContainer", lambda: request):
            self._apply(nri.StopContainerResponse.FromString(answer).update)
        self._events.container("RemoveContainer", nri.RemoveContainerRequest, nameless)

    def start_container(self, container: Container) -> Container:
        """A running container, with a pid."""
        with self._lock:
            created = self._containers[container.id]
            starting = replace(created, state=nri.CONTAINER_CREATED, pid=created.pid or self._new_pid())
            self._events.container("StartContainer", nri.StartContainerRequest, starting)
            started = replace(starting, state=nri.CONTAINER_RUNNING)
            self._containers[container.id] = started
            self._write(started)
            told = starting if self._manner.created_at_post_start else started
            self._events.container("PostStartContainer", nri.PostStartContainerRequest, told)
        return started

    def _new_pid(self) -> int:
        self._next_pid += 1
        return self._next_pid

    def fail_start(self, container: Container) -> Container:
        """A container whose start has failed before its process was there ("exec not found", a bad mount, a hook that
        fails): it has ended, and plugins are sent neither StartContainer nor StopContainer; RemoveContainer comes when
        it is removed (containerd 1.7.24 and 2.1.9).
        """
        with self._lock:
            ended = replace(self._containers[container.id], state=nri.CONTAINER_STOPPED, pid=0)
            self._containers[container.id] = ended
        return ended

    def run_container(self, pod: Pod, name: str, **options: float | str) -> Container:
        """create_container() and start_container()."""
        return self.start_container(self.create_container(pod, name, **options))  # type: ignore[arg-type]

    def update_container(self, container: Container, resources: nri.LinuxResources) -> Container:
        """CRI's UpdateContainerResources. Raises CriError."""
        with self._lock:
            before = self._containers[container.id]
            request = nri.UpdateContainerRequest(
                pod=before.pod.message(), container=before.message(), linux_resources=resources
            )
            updates: list[nri.ContainerUpdate] = []
            for _, answer in self._events.deliver("UpdateContainer", lambda: request):
                updates += nri.UpdateContainerResponse.FromString(answer).update
            self._containers[container.id] = before.with_resources(resources)
            self._write(self._containers[container.id])
            self._apply(updates)
            after = self._containers[container.id]
            self._events.container("PostUpdateContainer", nri.PostUpdateContainerRequest, after)
        return after

    def end_container(self, container: Container) -> Container:
        """A container whose process ends by itself, or is killed: plugins are told at once."""
        with self._lock:
            ends = replace(self._containers[container.id], state=nri.CONTAINER_STOPPED, pid=0)
            return self._stopped(container, ends if self._manner.stopped_when_it_ends else None)

    def stop_container(self, container: Container) -> Container:
        """A stopped container. A plugin's error does not keep it from stopping."""
        with self._lock:
            return self._stopped(container, None)

    def _stopped(self, container: Container, told: Container | None) -> Container:
        """told: as plugins are told of it, where that is not as it ran."""
        with self._lock:
            running = self._containers[container.id]
            request = nri.StopContainerRequest(pod=running.pod.message(), container=(told or running).message())
            stopped = replace(running, state=nri.CONTAINER_STOPPED, pid=0)
            self._containers[container.id] = stopped
            if self._cgroups is not None:
                self._cgroups.remove(running.cgroups_path)
            try:
                for _, answer in self._events.deliver("StopContainer", lambda: request):
                    self._apply(nri.StopContainerResponse.FromString(answer).update)
            except CriError as error:
                self.plugins.notes.append(str(error))
        return stopped

    def remove_container(self, container: Container) -> None:
        """Stopped first if it was not."""
        with self._lock:
            if self._containers[container.id].state != nri.CONTAINER_STOPPED:
                self.stop_container(container)
            self._events.container("RemoveContainer", nri.RemoveContainerRequest, self._containers.pop(container.id))

    def _snapshot(self) -> tuple[list[nri.PodSandbox], list[nri.Container]]:
        live = [container for container in self._containers.values() if container.state != nri.CONTAINER_STOPPED]
        return [pod.message() for pod in self._pods.values()], [container.message() for container in live]

    def _apply(self, updates: Iterable[nri.ContainerUpdate]) -> bool:
        """Whether nothing failed that may not. An update for a container that is not known is taken as done, as
        measured; one that fails keeps no other one from being carried out.
        """
        failed = False
        for update in updates:
            known = self._containers.get(update.container_id)
            if known is None:
                continue
            if self.fail_updates or known.id in self.refused:
                self.plugins.notes.append(f"an update of {known.name} failed")
                failed = failed or not update.ignore_failure
                continue
            self._containers[known.id] = known.with_resources(update.linux.resources)
            self._write(self._containers[known.id])
        return not failed

    def _write(self, container: Container) -> None:
        """Into its cgroup, where there is one."""
        path = container.cgroups_path
        if self._cgroups is not None and container.running:
            self._cgroups.make(path)
            self._cgroups.set_cpuset(path, container.cpus, container.mems)

    def _unsolicited(self, request: nri.UpdateContainersRequest) -> nri.UpdateContainersResponse:
        with self._locks.update():
            if not self._apply(request.update):
                raise StatusError(UNKNOWN, "NRI update of some containers failed")
        return nri.UpdateContainersResponse()


def _create(fails: str) -> None:
    """What the OCI runtime does."""
    if fails:
        raise CriError(fails)
