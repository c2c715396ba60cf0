"""What people ask of a running extender, and what they see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import pytest
import yaml

from extender.views.readout import MOST_ROWS
from lab.standins.patience import until
from numakin.kubectl.apiserver import Answer
from numakin.kubectl.commands import top
from numakin.kubectl.options import parser
from numakin.kubectl.session import Session
from numakin.placement.model.cpuset import CpuSet
from numakin.process.standard_output import CUT_OFF
from tests.extender.running import machine, reservation, running
from tests.machines import EPYC_NPS1
from tests.numakin.kubectl.asking import ask
from tests.numakin.kubectl.conftest import scored


def test_explain_says_where_a_pod_is_and_why(at):
    answer = ask("explain", "pod", "cart-0", "-n", "shop", at)
    assert answer.code == 0, answer.err
    assert answer.lines[0].startswith("cart-0 is on NUMA node 0 of node-1: kin here 75 %: pulls; ")
    assert "others of its group are there now" in answer.lines[0]
    assert "pod shop/cart-0, group shop/boutique" in answer.lines
    (row,) = [line.split() for line in answer.lines if line.startswith("cart ")]
    assert row == ["cart", "create", "0", "0-7", "0", "kept", "(NUMA", "node", "0)", "kin", "here", "75", "%:", "pulls"]


def test_explain_shows_what_else_was_weighed_the_best_first(at):
    answer = ask("explain", "cart-9", "-n", "shop", at)
    nodes = [line.split()[0] for line in answer.lines if line.startswith("node-")]
    assert nodes == ["node-1", "node-2"]
    assert answer.lines[0].startswith("room is held for cart-9 on NUMA node 0 of node-1 because ")
    assert "room is held on node-1, NUMA node 0" in answer.out


def test_explain_asks_for_the_nodes_that_it_shows_and_says_how_many_there_are(tmp_path):
    """The extender decides anew for each: of 5,000 that takes it seconds."""
    names = [f"node-{number}" for number in range(12)]
    body = json.loads(scored("cart-1")) | {"NodeNames": names}
    with running(tmp_path) as single:
        single.post("prioritize", json.dumps(body).encode())
        at = f"--extender=http://{single.web_address}"
        told = {form: ask("explain", "cart-1", "-n", "shop", "-o", form, at) for form in ("table", "wide", "json")}
        few = single.get("/api/v1/explain?namespace=shop&pod=cart-1&nodes=2")["scored"]
        assert single.ask("GET", "/api/v1/explain?pod=x&nodes=all")[0] == 400
    assert [row["node"] for row in few["nodes"]] == ["node-0", "node-1"]
    assert few["nodes_scored"] == 12
    shown = {form: sum(line.startswith("node-") for line in answer.lines) for form, answer in told.items()}
    assert (shown["table"], shown["wide"], len(told["json"].json["scored"]["nodes"])) == (10, 12, 12)
    assert "on 12 nodes" in told["table"].out
    assert "and 2 more: -o wide" in told["table"].lines


def test_all_groups_are_listed_however_many_one_answer_holds(tmp_path):
    members = [reservation(f"pod-{at}", "0", group=f"shop/g{at}", milli=10) for at in range(MOST_ROWS + 1)]
    with running(tmp_path) as single:
        single.enforcer("node-1").report(machine(cpus=64), *members)
        at = f"--extender=http://{single.web_address}"
        until(lambda: single.get("/api/v1/groups")["groups"], "the node is known")
        assert single.get("/api/v1/groups")["remaining"] == 1
        listed = ask("groups", "-A", "-o", "json", at).json["groups"]
        shown = ask("map", "-o", "json", at).json["groups"]
    assert len(listed) == len(shown) == len(members)


@pytest.mark.parametrize("words", [("pod", "cart-0"), ("pod/cart-0",), ("cart-0",), ("po", "cart-0")], ids=" ".join)
def test_a_pod_is_named_as_for_kubectl(at, words):
    assert ask("explain", *words, "-n", "shop", at, "-o", "json").json["pod"] == "shop/cart-0"


def test_a_pod_that_nobody_knows_is_bad_news_and_no_failure(at):
    answer = ask("explain", "pod", "nobody", at)
    assert answer.code == 1
    assert answer.err.startswith("kubectl numakin: pod default/nobody was neither scored nor reported lately; ")


@pytest.mark.parametrize(
    "words", [("cart", "-n", "shop"), ("cart-8", "-n", "shop"), ("pod", "shop/cart-8")], ids=" ".join
)
def test_pods_that_could_be_meant_are_named(at, words):
    answer = ask("explain", *words, at)
    assert answer.code == 1
    assert "pod shop/cart" in answer.err
    assert "known are cart-0" in answer.err
    assert answer.err.count("\n") == 1


def test_the_wide_map_and_groups_show_the_caches_that_members_are_kept_within(tmp_path):
    first, second = CpuSet.parse("0-3,32-35"), CpuSet.parse("4-7,36-39")
    members = [
        replace(reservation(uid, "0", milli=milli), cache_domain=cache)
        for uid, milli, cache in (("a", 1500, first), ("b", 500, first), ("c", 4000, second))
    ]
    with running(tmp_path) as single:
        single.enforcer("epyc").report(EPYC_NPS1, *members, hot={str(second): True})
        until(lambda: single.get("/api/v1/nodes")["nodes"], "the node is known")
        address = f"--extender=http://{single.web_address}"
        seen, groups, brief = (
            ask("map", "-o", "wide", address),
            ask("groups", "-A", "-o", "wide", address),
            ask("map", address),
        )
    assert "25% 2 " in next(line for line in seen.lines if "cache of CPUs 0-3,32-35" in line)
    hot = next(line for line in seen.lines if "cache of CPUs 4-7,36-39" in line)
    assert "50% 4 " in hot
    assert "too busy" in hot
    assert sum("(cache of CPUs 0-3,32-35)" in line for line in groups.lines) == 2
    assert "cache" not in brief.out


def test_the_map_shows_each_numa_node_and_who_is_there(at):
    answer = ask("map", at)
    assert answer.code == 0, answer.err
    first = next(at for at, line in enumerate(answer.lines) if line.startswith("node-1"))
    home, other = answer.lines[first : first + 2]
    assert "shop/boutique x3" in home  # two that run there, and the one that was scored
    assert "shop/boutique x1" in other
    assert "19% 1.5" in other


def test_the_map_begins_with_its_sums(at):
    """Two nodes of two NUMA nodes with 8 CPUs each; three members that run, and one whose room is held."""
    assert ask("map", at).lines[0] == (
        "4 NUMA nodes on 2 nodes, 5.5 of 32 CPUs requested (17%), 4.0 GiB of 64.0 GiB memory, 4 members, "
        "1 CPU held for pods to come"
    )
    assert ask("map", "--node", "node-2", at).lines[0] == (
        "2 NUMA nodes on 1 node, 0 of 16 CPUs requested (0%), 0 B of 32.0 GiB memory, 0 members"
    )


def test_the_map_marks_what_is_hot_and_counts_it(tmp_path):
    with running(tmp_path) as single:
        single.enforcer("n1").report(machine(), reservation("a", "1"), hot={"8-15": True})
        until(lambda: single.get("/api/v1/nodes")["nodes"], "the node is known")
        lines = ask("map", f"--extender=http://{single.web_address}").lines
    assert lines[0].endswith("1 member, 1 NUMA node hot")
    assert any(line.split()[:2] == ["1", "hot"] for line in lines)


def test_a_pod_over_several_numa_nodes_is_one_member_and_not_on_one(tmp_path):
    with running(tmp_path) as single:
        single.enforcer("n1").report(machine(), reservation("a", "0-1"))
        until(lambda: single.get("/api/v1/nodes")["nodes"], "the node is known")
        at = f"--extender=http://{single.web_address}"
        seen, groups = ask("map", at), ask("groups", "-A", at)
    assert seen.lines[0].endswith(", 1 member")
    assert groups.lines[0] == "1 pod in 1 group on 1 node, 1 of them not wholly on one NUMA node"


def test_the_map_tells_an_enforcer_without_its_runtime_from_one_that_is_silent(tmp_path):
    with running(tmp_path) as single:
        single.enforcer("n1").report(machine(), registered=False)
        until(lambda: single.get("/api/v1/nodes")["nodes"], "the node is known")
        lines = ask("map", f"--extender=http://{single.web_address}").lines
    assert lines[0].endswith("1 node without a working enforcer")
    assert any(line.startswith("n1 (not registered with its runtime) ") for line in lines)


def test_one_node_can_be_picked(at):
    nodes = ask("map", "--node", "node-2", at, "-o", "json").json["nodes"]
    assert [node["node"] for node in nodes] == ["node-2"]


def test_groups_tells_how_many_are_together(at):
    answer = ask("groups", "-n", "shop", at)
    row = next(line for line in answer.lines if line.startswith("shop/boutique"))
    assert row.split()[1] == "4"
    assert "node-1:0 x3, node-1:1 x1" in row
    assert answer.lines[0] == "4 pods in 1 group on 1 node, 1 of them not wholly on one NUMA node"


def test_groups_of_another_namespace_are_another_question(at):
    assert "no group has members in namespace default" in ask("groups", at).out
    assert "shop/boutique" in ask("groups", "-A", at).out


def test_what_says_where_may_stand_before_the_command_and_what_is_after_it_wins(at):
    """As for kubectl itself: the namespace was taken for the command."""
    assert ask("-n", "shop", at, "groups").lines[1:] == ask("groups", "-n", "shop", at).lines[1:]
    assert "no group has members in namespace other" in ask("-n", "shop", at, "groups", "-n", "other").out


def test_wide_names_every_member(at):
    answer = ask("groups", "-n", "shop", "-o", "wide", at)
    assert sum(line.startswith("shop/boutique") for line in answer.lines) == 4


def test_top_names_who_talks_to_whom(at):
    answer = ask("top", "-A", "--once", at)
    assert answer.code == 0, answer.err
    assert "no traffic between opted-in pods is known yet" in answer.out


@pytest.mark.parametrize(("words", "asked"), [
    (("-n", "shop"), {"namespace": "shop"}),
    (("-A",), {}),
], ids=["one namespace", "all"])  # fmt: skip
def test_top_asks_for_its_namespace_and_takes_an_answer_about_all(words, asked, capsys):
    """An extender that does not know the query answers with the edges of every namespace."""
    seen: list[Mapping[str, str]] = []

    class Older:
        def request(self, method: str, path: str, query: Mapping[str, str], body: bytes | None) -> Answer:
            assert (method, path, body) == ("GET", "/api/v1/graph", None)
            seen.append(query)
            rows = [
                {
                    "source": f"{name}/Deployment/a",
                    "target": f"{name}/Deployment/b",
                    "kind": "tcp",
                    "bytes_per_second": 1.0,
                    "messages_per_second": 1.0,
                }
                for name in ("big", "shop")
            ]
            relays = ["big/Deployment/proxy", "shop/Deployment/mesh"]
            return Answer(
                200, json.dumps({"edges": rows, "workloads": [], "edges_known": 2, "relays": relays}).encode()
            )

    def told(*more: str) -> str:
        given = parser().parse_args(["top", *words, "--extender", "http://older:1", "--once", *more])
        session = Session(given)
        session.extender = Older()
        assert top.run(given, session) == 0
        return capsys.readouterr().out

    people, programs = told(), told("-o", "json")
    assert ("big/" in people) == ("-A" in words), "nor a relay of another namespace"
    assert ("1 pairs shown of 1 of namespace shop" if asked else "2 pairs shown of 2 known") in people
    shown = [edge["source"].partition("/")[0] for edge in json.loads(programs)["edges"]]
    assert seen == [asked, asked]
    assert shown == (["shop"] if asked else ["big", "shop"])


@pytest.mark.parametrize("command", [("map",), ("groups", "-A"), ("top", "-A"), ("explain", "cart-9", "-n", "shop")])
def test_json_and_yaml_say_the_same(at, command):
    as_json = ask(*command, at, "-o", "json").json
    as_yaml = yaml.safe_load(ask(*command, at, "-o", "yaml").out)
    assert shape(as_json) == shape(as_yaml)


def shape(value: object) -> object:
    """Without what passes with time."""
    if isinstance(value, dict):
        return {key: shape(entry) for key, entry in value.items() if "seconds" not in key}
    return [shape(entry) for entry in value] if isinstance(value, list) else value


def test_a_reader_that_goes_away_is_no_failure_of_ours(at):
    command = [sys.executable, "-m", "numakin.kubectl", "map", at, "-o", "json"]
    done = subprocess.run(["sh", "-c", f"{' '.join(command)} | head -c 1"], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_a_reader_that_goes_away_is_told_by_the_exit_code_of_a_broken_pipe(at, form):
    """Not by the one of bad news. The pipe has no reader from the beginning."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "numakin.kubectl", "map", at, "-o", form]
    with os.fdopen(writer, "wb") as gone:
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (CUT_OFF, "")


def test_a_locale_without_the_map_s_bars_costs_the_bars_alone(at):
    command = [sys.executable, "-m", "numakin.kubectl", "map", at]
    latin = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, env=latin, check=False)
    assert done.returncode == 0, done.stderr
    assert b"19% 1.5" in done.stdout
