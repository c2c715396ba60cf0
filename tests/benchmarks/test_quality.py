"""The quality benchmark: it measures what it says, the same each time, and its small form reaches the goal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.quality import measure, rows
from benchmarks.quality.__main__ import main
from benchmarks.quality.arrivals import ORDERS, events, remaining
from benchmarks.quality.cold import LearningNode
from benchmarks.quality.earlier import learned
from benchmarks.quality.placers import View
from benchmarks.quality.run import FIT, OURS, PLACERS, Case, run
from benchmarks.quality.scenario import FILLS, GRAPHS, scenario
from benchmarks.quality.searched import Searched
from benchmarks.yardstick.best_known import known, problem_of
from benchmarks.yardstick.bound import upper_bound
from benchmarks.yardstick.exact import optimum
from benchmarks.yardstick.sample import sample
from enforcer.observer.traffic_loop import HALF_LIVES
from numakin.placement.plan.search import solve
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests.numakin.placement.asking import nodes


def seated(what, *numa_nodes: str):
    """One replica of each of the first services, where it says."""
    occupancy, members = Occupancy(), {}
    for service, where in zip(what.services, numa_nodes, strict=False):
        pod = f"{service.name}#0"
        occupancy = occupancy.with_reservation(Reservation(pod, pod, "", nodes(where), service.demand))
        members[pod] = service.name
    return occupancy, members


class TestMeasures:
    def test_a_pair_is_local_inside_one_numa_node_alone(self):
        what = scenario("clique", 2, 0.5)
        assert measure.locality(what, *seated(what, "0", "0")) == 1.0
        assert measure.locality(what, *seated(what, "0", "1")) == 0.0
        assert measure.locality(what, *seated(what, "0-1", "0-1")) == 0.0, "a wide cpuset must not flatter"

    def test_oversubscription_is_seen_on_one_numa_node_and_on_sets(self):
        what = scenario("clique", 2, 0.5)
        service = replace(what.services[0].demand, cpu_milli=15_000)

        def over(*numa_nodes: str) -> int:
            occupancy = Occupancy()
            for number, where in enumerate(numa_nodes):
                pod = f"p{number}"
                occupancy = occupancy.with_reservation(Reservation(pod, pod, "", nodes(where), service))
            return measure.oversubscription(what, occupancy)

        assert over("0", "1") == 0
        assert over("0", "0") == 10_000, "30 CPUs asked of 20"
        assert over("0", "0-1") == 0
        assert over("0", "1", "0-1") == 5_000, "45 CPUs asked of 40"


class TestScenarios:
    @pytest.mark.parametrize("graph", GRAPHS)
    @pytest.mark.parametrize("fill", FILLS)
    def test_a_scenario_fills_the_machine_as_far_as_it_says(self, graph, fill):
        what = scenario(graph, 4, fill)
        asked = (
            sum(service.demand.cpu_milli * service.replicas for service in what.services)
            / 1000
            / len(what.machine.cpus)
        )
        assert fill - 0.03 <= asked <= fill

    @pytest.mark.parametrize("order", ORDERS)
    def test_the_same_seed_gives_the_same_events_and_none_contradicts_another(self, order):
        what = scenario("online-boutique", 4, 0.7)
        happening = events(what, order)
        assert happening == events(what, order)
        there = set()
        for entry in happening:
            assert (entry.pod in there) is not entry.joins
            (there.add if entry.joins else there.discard)(entry.pod)
        assert sum(remaining(what, happening).values()) == len(there)

    def test_what_is_learned_is_near_the_truth_and_not_the_truth(self):
        what = scenario("social-network", 4, 0.7)
        known, true = learned(what), what.weights
        heaviest = sorted(true, key=lambda pair: -true[pair])[:20]
        assert set(heaviest) <= set(known)
        ratios = [known[pair] / true[pair] / (sum(known.values()) / sum(true.values())) for pair in heaviest]
        assert all(0.3 < ratio < 3 for ratio in ratios)
        assert any(abs(ratio - 1) > 0.1 for ratio in ratios)


class TestLives:
    """From an earlier life that is known to nothing known at all."""

    @pytest.mark.thorough
    def test_every_row_is_lived_through_and_nothing_is_oversubscribed(self, capsys):
        arguments = ["--rows", "--graphs", "online-boutique", "--numa-nodes", "2", "--fills", "0.7", "--jobs", "1"]
        assert main([*arguments, "--worst", "1"]) == 0
        printed = capsys.readouterr().out
        assert all(row in printed for row in rows.ROWS)
        ends = rows.reached("online-boutique", 2, 0.7, 0)
        assert {end.row for end in ends} == set(rows.ROWS)
        assert all(end.oversubscribed == 0 and 0 <= end.share <= 1 for end in ends)
        assert ends == rows.reached("online-boutique", 2, 0.7, 0), "the same seed gives the same figures"

    @pytest.mark.thorough
    def test_ten_minutes_of_learning_and_moving_bring_home_what_arrivals_could_not_know(self):
        ends = {(end.row, end.case.order): end.share for end in rows.reached("power-law", 4, 0.7, 0)}
        assert ends[rows.MOVING, "random"] > ends[rows.LEARNING, "random"] + 0.2

    def test_the_node_forgets_by_half_when_the_observer_does(self):
        what = scenario("clique", 2, 0.5)
        occupancy, members = seated(what, "0", "1")
        node = LearningNode(what, seed=0)
        (weight,) = node.window(occupancy, members).talk.values()
        for _ in range(HALF_LIVES):
            (later,) = node.window(occupancy, {}).talk.values()
        assert later == pytest.approx(weight / 2)

    def test_a_disturbed_graph_lacks_edges_and_keeps_none_as_it_was(self):
        true = scenario("social-network", 4, 0.7).weights
        noisy = rows.disturbed(true, "x")
        assert 0.7 < len(noisy) / len(true) < 0.9
        assert all(noisy[pair] != true[pair] for pair in noisy)


class TestSearched:
    """What a long search makes of a graph, the way of a life."""

    def lived(self, what, order: str):
        """Who sits where in the end, by a search that knows the true traffic."""
        place, occupancy, members = Searched(what, what.weights, events(what, order)), Occupancy().on(what.machine), {}
        for event in events(what, order):
            if event.joins:
                occupancy, fits = place(View(what, occupancy, members, event))
                assert fits
                members[event.pod] = event.workload
            else:
                occupancy = occupancy.without_pod(event.pod)
                del members[event.pod]
            assert not measure.oversubscription(what, occupancy)
        return occupancy, members

    def test_with_the_true_graph_those_who_stay_are_as_good_as_the_best_known(self):
        what = scenario("training", 2, 0.7)
        assert measure.locality(what, *self.lived(what, "random")) >= known(what).locality - 0.01

    def test_a_round_goes_by_who_is_there_already(self):
        what = scenario("training", 2, 0.7)
        final = what.with_replicas(remaining(what, events(what, "churn")))
        assert measure.locality(what, *self.lived(what, "churn")) >= known(final).locality - 0.05

    def test_by_how_much_a_life_is_below_it_is_told_for_the_worst(self):
        def end(row: str, graph: str, share: float) -> rows.Reached:
            return rows.Reached(row, Case(graph, 4, 0.7, "churn"), share, share, 0.0, 0)

        ends = [end(rows.NOISY_CHURN, "star", 0.90), end(rows.SEARCHED_CHURN, "star", 0.95)]
        ends += [end(rows.NOISY_CHURN, "clique", 0.98), end(rows.SEARCHED_CHURN, "clique", 0.97)]
        told = "noisy, churn below searched, churn: mean 0.020, at most 0.050 (target 0.03), over the target 1 of 2"
        assert told in rows.text(ends)
        assert "below" not in rows.text(ends[::2]), "nothing to compare with"


class TestYardstick:
    @pytest.mark.parametrize(("members", "bins"), [(8, 2), (10, 3)])
    def test_the_search_finds_what_is_proven_best_and_no_bound_is_below_it(self, members, bins):
        problem = sample(members, bins, fill=0.8, seed=1)
        exact = optimum(problem, time_limit=60)
        assert exact.proven
        assert solve(problem).locality() == pytest.approx(exact.locality)
        assert upper_bound(problem) >= exact.locality - 1e-9

    def test_nobody_is_left_out_of_the_best_known(self):
        state = solve(problem_of(scenario("online-boutique", 2, 0.9)), effort=5)
        assert not any(row[-1] for row in state.counts)


def test_the_same_run_twice_gives_the_same_figures():
    def figures():
        return [
            (entry.case, [(o.placer, o.share, o.locality, o.moved) for o in entry.outcomes])
            for entry in run("online-boutique", 2, 0.7)
        ]

    assert figures() == figures()


def test_the_quick_benchmark_reaches_the_goal_and_oversubscribes_nothing(tmp_path, capsys):
    assert main(["--quick", "--jobs", "1", "--json", str(tmp_path / "q.json"), "--plot", str(tmp_path / "q.svg")]) == 0
    assert "): reached" in capsys.readouterr().out
    assert (tmp_path / "q.svg").read_text().startswith("<svg")
    for result in json.loads((tmp_path / "q.json").read_text()):
        by_placer = {outcome["placer"]: outcome for outcome in result["outcomes"]}
        assert set(by_placer) == set(PLACERS)
        assert by_placer[OURS]["oversubscribed"] == by_placer[FIT]["oversubscribed"] == 0
        assert result["best"] <= result["bound"] + 1e-9
