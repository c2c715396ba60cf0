"""What happened between two looks."""

from hypothesis import given
from hypothesis import strategies as st

from enforcer.cri.changes import Kind, Snapshot, changes
from proto import nri_pb2 as nri


@st.composite
def snapshots(draw) -> Snapshot:
    sandboxes = {key: nri.PodSandbox(id=key) for key in draw(st.sets(st.sampled_from("PQR")))}
    containers = {}
    for key in draw(st.sets(st.sampled_from("abcdef"))) if sandboxes else ():
        pod = sorted(sandboxes)[ord(key) % len(sandboxes)]
        state = draw(st.sampled_from([nri.CONTAINER_CREATED, nri.CONTAINER_RUNNING]))
        one = nri.Container(id=key, pod_sandbox_id=pod, state=state, created_at=draw(st.integers(0, 3)))
        one.linux.resources.cpu.shares.value = draw(st.integers(1, 2))
        containers[key] = one
    return Snapshot(sandboxes, containers)


@given(snapshots(), snapshots())
def test_the_changes_lead_from_the_one_to_the_other(before: Snapshot, after: Snapshot) -> None:
    now, sandboxes = dict(before.containers), dict(before.sandboxes)
    for one in changes(before, after):
        if one.kind is Kind.POD_ENDED:
            del sandboxes[one.pod.id]
        elif one.kind is Kind.STOPPED:
            del now[one.container.id]
        else:
            assert (one.container.id in now) == (one.kind is not Kind.CREATED)
            assert one.pod.id == one.container.pod_sandbox_id
            now[one.container.id] = one.container
    assert now.keys() == after.containers.keys()
    assert all(now[key].state == one.state for key, one in after.containers.items())
    assert all(now[key].linux == one.linux for key, one in after.containers.items())
    assert sandboxes.keys() <= after.sandboxes.keys()


@given(snapshots())
def test_nothing_happened_when_nothing_changed(one: Snapshot) -> None:
    assert not list(changes(one, one))


@given(snapshots(), snapshots())
def test_what_ends_makes_room_before_what_comes_and_the_older_comes_first(before: Snapshot, after: Snapshot) -> None:
    found = list(changes(before, after))
    order = [Kind.STOPPED, Kind.POD_ENDED, Kind.CREATED]
    told = [one for one in found if one.kind in order]
    assert told == sorted(told, key=lambda one: order.index(one.kind))
    newcomers = [one.container.created_at for one in found if one.kind is Kind.CREATED]
    assert newcomers == sorted(newcomers)
