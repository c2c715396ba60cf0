"""What `numakin-enforcer status` prints: the sums, a line for each group, and who is not well."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from enforcer.cli import status
from enforcer.local import control
from numakin.wire import local_pb2 as local

FITS_NOWHERE = "fits nowhere 90 CPUs: left open over all 2 NUMA nodes"


def container(name: str = "cart", group: str = "shop/web", state: str = "pinned", **more: object) -> dict[str, Any]:
    home = {"numa_nodes": "0", "cpus": "0-7", "mems": "0"} if state == "pinned" else {"numa_nodes": "", "cpus": ""}
    row = {"pod": f"shop/{name}", "container": "app", "group": group, "state": state, "mems": "", **home}
    return row | {"let_out": "", "found_cpus": "", "found_mems": "", "reasons": ["policy"]} | more


def answered(*containers: dict[str, Any], **more: object) -> dict[str, Any]:
    return {
        "node": "node-1", "generation": 1, "registered": True, "confirmed_seconds_ago": None, "released": False,
        "containers": list(containers), "observer": {}, **more,
    }  # fmt: skip


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """What is printed of an answer."""

    def run(answer: dict[str, Any], *, every: bool = False) -> str:
        monkeypatch.setattr(status, "ask", lambda _: answer)
        assert status.status(Path("/run"), as_json=False, every=every) == 0
        return capsys.readouterr().out

    return run


MIXED = (
    container("cart-0"),
    container("cart-1", numa_nodes="1", let_out="0"),
    container("huge", state="left open", reasons=[FITS_NOWHERE]),
    container("db-0", group="shop/db", found_cpus="0-79"),
    container("db-1", group="shop/db", state="yielded"),
    container("db-2", group="shop/db", state="conflict"),
)


def test_the_sums_come_first(shown) -> None:
    first, second = shown(answered(*MIXED)).splitlines()[:2]
    assert first.startswith("node node-1: registered with the runtime")
    assert second == (
        "6 containers of 6 pods in 2 groups: 3 pinned, 1 left open, 1 yielded to another owner of cpusets, "
        "1 left to another NRI plugin, 1 let out of hot NUMA nodes or caches, 1 with another cpuset than they were given"
    )


def test_a_group_is_a_line_with_where_its_pods_are_and_who_is_not_well(shown) -> None:
    rows = [
        [cell.strip() for cell in line.split("│")[1:5]]
        for line in shown(answered(*MIXED)).splitlines()
        if line.count("│") == 5
    ]
    assert rows == [
        ["shop/db", "3", "0 x1", "1 differs, 1 yielded, 1 conflict"],
        ["shop/web", "3", "0 x1, 1 x1", "1 left open"],
    ]


def test_who_is_not_well_is_named_with_the_reason_and_nobody_else(shown) -> None:
    out = shown(answered(*MIXED))
    assert f"shop/huge app: {FITS_NOWHERE}" in out
    assert "0-79, NOT 0-7" in out
    assert [name for name in ("db-0", "db-1", "db-2", "huge", "cart-0", "cart-1") if f"shop/{name}" in out] == [
        "db-0", "db-1", "db-2", "huge",
    ]  # fmt: skip


def test_where_all_are_well_a_hundred_containers_take_a_few_lines(shown) -> None:
    out = shown(answered(*(container(f"cart-{number}") for number in range(100))))
    assert "100 containers of 100 pods in 1 group: 100 pinned" in out
    assert "all are well; every container, with its reasons: --all" in out
    assert len(out.splitlines()) < 12


def test_every_container_is_shown_by_group_where_all_are_asked_for(shown) -> None:
    out = shown(answered(*reversed(MIXED)), every=True)
    assert [line.split("│")[2].strip() for line in out.splitlines() if line.count("│") == 8] == [
        "shop/db-0", "shop/db-1", "shop/db-2", "shop/cart-0", "shop/cart-1", "shop/huge",
    ]  # fmt: skip
    assert "1, let out to 0" in out
    assert "--all" not in out


@pytest.mark.parametrize("state", ["open as asked", "in a virtual machine", "stopped"])
def test_what_is_open_by_its_own_wish_is_summed_up_and_well(shown, state: str) -> None:
    assert "all are well" in shown(answered(container(state=state)))


def test_one_that_has_not_opted_in_is_shown_only_where_its_cgroup_differs(shown) -> None:
    out = shown(answered(container("stranger", "", "not opted in", cpus="8-15", found_cpus="0-15")))
    assert "no container that opted in runs here" in out
    assert "0-15, NOT 8-15" in out


def test_an_enforcer_of_an_older_version_is_refused_in_words(tmp_path: Path, capsys) -> None:
    older = json.dumps({"node": "node-1", "containers": [{"pod": "shop/cart", "container": "app"}]})
    reply = local.FromHook(status=local.Status(json=older))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "hook.sock"))
        listening.listen()

        def answer() -> None:
            with listening.accept()[0] as peer:
                peer.recv(1 << 16)
                peer.sendall(control.framed(reply))

        peer = threading.Thread(target=answer)
        peer.start()
        assert status.status(tmp_path, as_json=False) == 1
        peer.join()
    assert "is of an older version than this program" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's files take root")
def test_who_may_not_ask_is_told_to_be_root(tmp_path: Path, capsys) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    os.seteuid(65534)
    try:
        assert status.status(tmp_path / "run", as_json=False) == 1
    finally:
        os.seteuid(0)
    assert "Permission denied; run as root" in capsys.readouterr().err


def test_what_can_not_be_written_down_is_said(shown) -> None:
    assert "can't be written down, so that a restart may not know them: No space left" in shown(
        answered(not_written_down="No space left on device")
    )


@pytest.mark.parametrize("every", [True, False])
def test_text_is_shown_as_it_is(shown, every) -> None:
    odd = container(container="[/]", state="left open", reasons=["cpus.numakin.io: '[/]' is not allowed"])
    assert "shop/cart [/]: cpus.numakin.io: '[/]' is not allowed" in shown(answered(odd), every=every)


def test_nothing_is_cropped_where_no_terminal_is(shown) -> None:
    """Also where it is longer than any terminal."""
    pod, cpus = "shop/" + "cart-" * 20, ",".join(map(str, range(0, 400, 2)))
    out = shown(answered(container(pod=pod), container(cpus=cpus)), every=True)
    assert "…" not in out
    assert pod in out
    cells = [line.split("│")[6].strip() for line in out.splitlines() if line.count("│") == 8]
    assert cpus in "".join(cells)
