"""What a container runtime sends: NRI's mux, ttrpc, and the messages inside, up to the agent."""

from __future__ import annotations

from collections.abc import Iterator

from enforcer.hook.process import concerns_members
from enforcer.nri import mux, ttrpc
from enforcer.nri.errors import PeerError, ProtocolError
from enforcer.nri.handlers import Handlers
from numakin.placement.model.cpuset import CpuSet
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.world import World
from tests.enforcer.nri.peer import Talk, request, response
from tests.fuzz.target import Target, must, pieces

METHODS = (
    "CreateContainer",
    "UpdateContainer",
    "StopContainer",
    "RunPodSandbox",
    "StateChange",
    "Synchronize",
    "Configure",
)


def frames(data: bytes) -> None:
    """However the stream is cut, the frames are the same, and no more is held than one frame takes."""
    must(_frames([data]) == _frames(pieces(data)), "a stream's frames do not hang on how it is cut")


def _frames(parts: list[bytes]) -> list[mux.Frame | str]:
    demux, made = mux.Demux(), list[mux.Frame | str]()
    try:
        for part in parts:
            made += demux.feed(part)
    except PeerError as error:
        # Those before it in the same piece are lost with the connection.
        return [str(error)]
    return made


def messages(data: bytes) -> None:
    must(_messages([data]) == _messages(pieces(data)), "a stream's messages do not hang on how it is cut")


def _messages(parts: list[bytes]) -> list[object]:
    decoder, made = ttrpc.Decoder(), list[object]()
    try:
        for part in parts:
            made += decoder.feed(part)
    except PeerError as error:
        return [str(error)]
    return made


def session(data: bytes) -> None:
    """Any bytes after registration, in any pieces: only a ProtocolError ends it."""
    talk = _talk(World())
    try:
        for part in pieces(data):
            talk.feed(part)
        talk.session.catch_up()
    except ProtocolError:
        pass
    must(not talk.stats.handler_errors, f"no handler fails: {talk.stats.handler_errors}")


def event(data: bytes) -> None:
    """One call with any payload, beside a container that has CPUs of its own: answered without an error status, or the
    payload is none; then the next container is placed as ever.
    """
    world = World()
    talk = _talk(world)
    own = nri.CreateContainerRequest(pod=POD, container=_container("own", "c-own"))
    talk.ask("CreateContainer", own)
    method = METHODS[data[0] % len(METHODS)] if data else METHODS[0]
    try:
        answer = talk.ask(method, data[1:])
        talk.session.catch_up()
    except ProtocolError:
        return
    must(method == "Configure" or not answer.status.code, f"no container fails: {answer.status.message}")
    must(not talk.stats.handler_errors, f"no handler fails: {talk.stats.handler_errors}")
    _exclusive_is_exclusive(world)


def _exclusive_is_exclusive(world: World) -> None:
    seen = CpuSet()
    for allocation in world.agent.occupancy.allocations.values():
        must(seen.isdisjoint(allocation.exclusive), "no CPU is exclusive twice")
        seen |= allocation.exclusive


def _talk(world: World) -> Talk:
    agent = world.agent
    return Talk(
        Handlers(
            synchronize=agent.synchronize,
            concerns=concerns_members,
            create_container=agent.create_container,
            update_container=agent.update_container,
            stop_container=agent.stop_container,
            post_create_container=agent.post_create_container,
            start_container=agent.start_container,
            remove_container=agent.remove_container,
            run_pod_sandbox=lambda pod: None,
            stop_pod_sandbox=agent.stop_pod_sandbox,
            remove_pod_sandbox=agent.stop_pod_sandbox,
        )
    )


OPTED_IN = {"group.numakin.io": "cart", "cpus.numakin.io": "exclusive", "memory.numakin.io": "strict"}
POD = nri.PodSandbox(id="p1", name="cart-0", namespace="shop", uid="u1", annotations=OPTED_IN)
POD.linux.cgroup_parent = "/kubepods/podu1"


def _container(name: str, identity: str) -> nri.Container:
    made = nri.Container(id=identity, pod_sandbox_id="p1", name=name, state=nri.CONTAINER_RUNNING, annotations=OPTED_IN)
    made.linux.cgroups_path = f"/kubepods/podu1/{identity}"
    made.linux.resources.cpu.shares.value = 2048
    made.linux.resources.cpu.cpus, made.linux.resources.cpu.mems = "", "0"
    made.linux.resources.memory.limit.value = 1 << 30
    made.linux.devices.add(path="/dev/gpu0", type="c", major=195, minor=0)
    return made


def _requests() -> list[tuple[str, bytes]]:
    container = _container("main", "c1")
    both = {"pod": POD, "container": container}
    return [
        ("CreateContainer", nri.CreateContainerRequest(**both).SerializeToString()),
        (
            "UpdateContainer",
            nri.UpdateContainerRequest(**both, linux_resources=container.linux.resources).SerializeToString(),
        ),
        ("StopContainer", nri.StopContainerRequest(**both).SerializeToString()),
        ("RunPodSandbox", nri.RunPodSandboxRequest(pod=POD).SerializeToString()),
        ("StateChange", nri.StateChangeEvent(event=nri.START_CONTAINER, **both).SerializeToString()),
        ("Synchronize", nri.SynchronizeRequest(pods=[POD], containers=[container]).SerializeToString()),
        ("Configure", nri.ConfigureRequest(runtime_name="containerd", runtime_version="2.1.9").SerializeToString()),
    ]


def _streams() -> Iterator[bytes]:
    sent = [request(2 * at + 5, method, payload) for at, (method, payload) in enumerate(_requests())]
    yield from sent
    yield b"".join(sent)
    yield response(1)
    yield response(3, nri.UpdateContainersResponse(failed=[nri.ContainerUpdate(container_id="c1")]), 2, "no")


def _events() -> Iterator[bytes]:
    for method, payload in _requests():
        yield bytes([METHODS.index(method)]) + payload


def _within() -> Iterator[bytes]:
    for stream in _streams():
        yield stream[mux.HEADER.size :]


TARGETS = (
    Target("nri-mux", frames, _streams),
    Target("nri-ttrpc", messages, _within),
    Target("nri-session", session, _streams),
    Target("nri-event", event, _events),
)
