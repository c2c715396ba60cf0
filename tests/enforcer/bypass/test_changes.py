"""What happened between two looks."""

from hypothesis import given
from hypothesis import strategies as st

from enforcer.bypass.changes import ChangeKind, RuntimeSnapshot, changes
from numakin.wire import nri_pb2 as nri


@st.composite
def snapshots(draw) -> RuntimeSnapshot:
    sandboxes = {key: nri.PodSandbox(id=key) for key in draw(st.sets(st.sampled_from("PQR")))}
    containers = {}
    for key in draw(st.sets(st.sampled_from("abcdef"))) if sandboxes else ():
        pod = sorted(sandboxes)[ord(key) % len(sandboxes)]
        state = draw(st.sampled_from([nri.CONTAINER_CREATED, nri.CONTAINER_RUNNING]))
        first = nri.Container(id=key, pod_sandbox_id=pod, state=state, created_at=draw(st.integers(0, 3)))
        first.linux.resources.cpu.shares.value = draw(st.integers(1, 2))
        containers[key] = first
    return RuntimeSnapshot(sandboxes, containers)


@given(snapshots(), snapshots())
def test_the_changes_lead_from_the_one_to_the_other(before: RuntimeSnapshot, after: RuntimeSnapshot) -> None:
    now, sandboxes = dict(before.containers), dict(before.sandboxes)
    for change in changes(before, after):
        if change.kind is ChangeKind.POD_ENDED:
            del sandboxes[change.pod.id]
        elif change.kind is ChangeKind.STOPPED:
            del now[change.container.id]
        else:
            assert (change.container.id in now) == (change.kind is not ChangeKind.CREATED)
            assert change.pod.id == change.container.pod_sandbox_id
            now[change.container.id] = change.container
    assert now.keys() == after.containers.keys()
    assert all(now[key].state == container.state for key, container in after.containers.items())
    assert all(now[key].linux == container.linux for key, container in after.containers.items())
    assert sandboxes.keys() <= after.sandboxes.keys()


@given(snapshots())
def test_nothing_happened_when_nothing_changed(first: RuntimeSnapshot) -> None:
    assert not list(changes(first, first))


@given(snapshots(), snapshots())
def test_what_ends_makes_room_before_what_comes_and_the_older_comes_first(
    before: RuntimeSnapshot, after: RuntimeSnapshot
) -> None:
    result = list(changes(before, after))
    order = [ChangeKind.STOPPED, ChangeKind.POD_ENDED, ChangeKind.CREATED]
    received = [entry for entry in result if entry.kind in order]
    assert received == sorted(received, key=lambda entry: order.index(entry.kind))
    newcomers = [entry.container.created_at for entry in result if entry.kind is ChangeKind.CREATED]
    assert newcomers == sorted(newcomers)
