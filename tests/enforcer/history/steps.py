"""What may happen on a node. Each step draws what it needs from its own random numbers, so that a history that fails
can be played again without some of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from numakin.placement.decide import relief
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand, PodBudget
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.history.laws import LAWS
from tests.enforcer.history.truth import MOST_PODS, NAMESPACES, VM, WISHES, Living, Truth
from tests.enforcer.restarts import GIB, container, path_of, pod


class History(Truth):
    """Pods and containers come, fail, restart, are resized, moved and end, others write cpusets, the run folder is full
    or not, answers come too late, and the enforcer is killed and started at any point, also before it has written down
    what it answered.
    """

    def step(self, name: str, seed: int) -> None:
        """One thing happens, and all that must hold is looked at. AssertionError where something does not."""
        self.draw = Random(seed)
        STEPS[name][1](self)
        for law in LAWS:
            law(self)

    def a_pod_comes(self) -> None:
        if len(self.pods) >= MOST_PODS:
            return
        self.count += 1
        annotations = {} if self._often(0.15) else {"group": f"g{self.count % 2}"}
        for key, (how_often, values) in WISHES.items() if annotations else ():
            if self._often(how_often):
                annotations[key] = self.draw.choice(values)
        made = pod(f"p{self.count}", **annotations)
        made.namespace = self.draw.choice(NAMESPACES)
        made.runtime_handler = VM if self._often(0.07) else ""
        self.pods[made.uid] = made
        if annotations and self._often(0.2):
            budget = self.draw.choice((1, 2, 3, 4))
            self.budgets[made.uid] = PodBudget.of(1000 * budget, {"side": self.draw.choice((0, 1, 2))})
            made.linux.pod_resources.CopyFrom(_limited(budget))
            if self._often(0.4):
                self._tell_budget(made)
        self.node.run_sandbox(made)

    def _tell_budget(self, sandbox: nri.PodSandbox) -> None:
        """As the extender does, which knows the pod's spec."""
        budget = self.budgets[sandbox.uid]
        said = pb.Expect(pod=sandbox.uid, budget=True, pod_demand=pb.Demand(cpu_milli=1000 * budget.cpus, memory=GIB))
        for name in ("app", "side"):
            own = budget.slice_of(name)
            said.containers.add(name=name, demand=pb.Demand(cpu_milli=1000 * own), slice=own)
        if self.node.agent is not None:
            self.node.agent.expect(said)
            self.told.add(sandbox.uid)

    def the_extender_tells_of_a_budget(self) -> None:
        of = [uid for uid in sorted(self.pods) if uid in self.budgets]
        if of:
            self._tell_budget(self.pods[self.draw.choice(of)])
            self._take_what_waits()
            self._answered()

    def a_pod_with_a_budget_is_resized(self) -> None:
        """The runtime says so of the pod before or after it does of the containers that were given its limit."""
        of = [uid for uid in sorted(self.pods) if uid in self.budgets]
        if not of or self.node.heard is None:
            return
        sandbox = self.pods[self.draw.choice(of)]
        before = self.budgets[sandbox.uid]
        cpus = self.draw.choice((1, 2, 3, 4, 6))
        if cpus <= sum(own for _, own in before.slices) or cpus == before.cpus:
            return
        self.budgets[sandbox.uid] = replace(before, cpus=cpus)
        told, pod_first = _limited(cpus), self._often(0.5)
        if pod_first:
            self.node.heard.update_pod_sandbox(sandbox, told)
        for key, living in self.live.items():
            if living.pod.uid == sandbox.uid and not before.slice_of(living.name):
                of_pod, running = self.node.running[key]
                self.node.apply(self.node.heard.update_container(of_pod, running, told))
                claimed = running.linux.resources.cpu.cpus, running.linux.resources.cpu.mems
                running.linux.resources.CopyFrom(told)
                running.linux.resources.cpu.cpus, running.linux.resources.cpu.mems = claimed
        if not pod_first:
            self.node.heard.update_pod_sandbox(sandbox, told)
        sandbox.linux.pod_resources.CopyFrom(told)
        if sandbox.uid in self.told:
            self._tell_budget(sandbox)  # its word of before is no word of what it has now
        self._take_what_waits()
        self._answered()

    def a_pause_process_dies(self) -> None:
        """Its pod's containers end, it gets a second sandbox, and the first is removed afterwards."""
        first = self._a_pod()
        if first is None:
            return
        for name in [name for name, living in self.live.items() if living.pod.uid == first.uid]:
            self._stop(name)
        second = nri.PodSandbox()
        second.CopyFrom(first)
        self.count += 1
        second.id = f"{first.name}-{self.count}"
        self.pods[first.uid] = second
        self.node.run_sandbox(second)
        self.node.end_sandbox(first, told=self._often(0.7))
        self._answered()

    def a_container_comes(self) -> None:
        """Or comes again, where one of that name has ended. It may fail at once, or be one that never is, since another
        plugin's answer has failed its creation.
        """
        sandbox, name = self._a_pod(), self.draw.choice(("app", "app", "side"))
        taken = {(living.pod.uid, living.name) for living in self.live.values()}
        if sandbox is None or (sandbox.uid, name) in taken or len(self.live) >= self.most:
            return
        self.count += 1
        key, claim = f"c{self.count}", str(self._a_claim() or "")
        made = container(key, self.draw.choice((0.1, 1, 1, 1.5, 2, 3, 4)), claim, created_at=self.count)
        made.name, made.pod_sandbox_id, made.state = name, sandbox.id, nri.CONTAINER_CREATED
        if (budget := self.budgets.get(sandbox.uid)) is not None:
            made.linux.resources.CopyFrom(_limited(budget.slice_of(name) or budget.cpus))
            made.linux.resources.cpu.cpus = claim
        fate = self.draw.choice(("runs", "runs", "runs", "runs", "starts later", "fails", "never is"))
        again = (sandbox.uid, name) in self.never_created
        heard, lost = self.node.attached, self._often(0.05)
        if heard:
            self.failed.tried_again(sandbox.uid, name)
        self.node.create(sandbox, made, listed=fate != "never is", lost=heard and lost)
        if fate != "never is":
            foreign = self.node.cpus(key) if claim or sandbox.runtime_handler == VM else None
            limit = None
            if self.node.within_others and foreign == self.wide() and sandbox.runtime_handler != VM and _is_in(sandbox):
                foreign, limit = None, foreign
            left = again and heard and foreign is None and self._is_managed(key)
            self.live[key] = Living(sandbox, name, foreign, uncertain=left, met=heard and not lost, limit=limit)
        elif heard:
            self.never_created.add((sandbox.uid, name))
        if fate == "runs":
            self.node.begin(key)
        if fate == "fails":
            self._ended(key)
            self.node.fail(key)
        if fate in ("never is", "fails") and heard:
            self.failed.attempts[key] = sandbox, name
        self._answered(written=not self._often(0.2))

    def _a_claim(self) -> CpuSet | None:
        """Another owner's on a container that is created."""
        if self._often(0.05):
            return self._anothers()
        return self.wide() if self._often(0.05) else None

    def _is_managed(self, key: str) -> bool:
        """Whether the enforcer takes another owner to set its cpuset."""
        known = self.node.agent.occupancy.allocations.get(key)
        return known is not None and known.externally_managed

    def a_container_starts(self) -> None:
        starting = self.starting()
        if not starting:
            return
        key = self.draw.choice(starting)
        if self._often(0.3):
            self.failed.attempts[key] = self.live[key].pod, self.live[key].name
            self._ended(key)
            self.node.fail(key)
        else:
            self.node.begin(key)
        self._answered()

    def what_failed_is_removed(self) -> None:
        """RemoveContainer is its first event since."""
        if not self.failed.attempts:
            return
        key = self.draw.choice(sorted(self.failed.attempts))
        self._remove(key)
        self._take_what_waits()
        self._answered()

    def a_container_ends(self) -> None:
        if self.live:
            self._stop(self._a_container(), lost=self._often(0.1))
            self._answered(written=not self._often(0.2))

    def a_pod_ends(self) -> None:
        """Its sandbox may end without a word, after its containers did; then the API server tells."""
        sandbox, told = self._a_pod(), self._often(0.7)
        if sandbox is None:
            return
        for key in [key for key, living in self.live.items() if living.pod.uid == sandbox.uid]:
            self._stop(key)
        for key in [key for key, (of, _) in self.failed.attempts.items() if of.uid == sandbox.uid]:
            self._remove(key)
        del self.pods[sandbox.uid]
        self.node.end_sandbox(sandbox, told=told)
        if self.node.heard is not None:
            self.node.heard.deleted([sandbox.uid])
        self._take_what_waits()
        self._answered()

    def a_sandbox_ends_before_its_containers(self) -> None:
        """The room comes free without an answer that may say so; once there was one, no member stays open that fits."""
        sandbox = self._a_pod()
        if sandbox is None:
            return
        for key in [key for key, (of, _) in self.failed.attempts.items() if of.uid == sandbox.uid]:
            self._remove(key)
        del self.pods[sandbox.uid]
        self.node.end_sandbox(sandbox)
        for key in [key for key, living in self.live.items() if living.pod.uid == sandbox.uid]:
            self._stop(key)
        if self.node.heard is not None:
            self.node.heard.deleted([sandbox.uid])
        for _ in range(2):
            self._take_what_waits()
        self._answered()
        if self.node.attached:
            second_best, allocations = self.node.agent.moves.second_best, self.node.agent.occupancy.allocations
            for key, requests in second_best._waiting().items():
                stays = allocations[requests[0].container].open
                assert not stays or second_best._better(requests) is None, f"{key} is left open, and there is room"

    def a_container_is_resized(self) -> None:
        """Whether or not the runtime has somebody to tell."""
        if not self.live:
            return
        key = self._a_container()
        sandbox, running = self.node.running[key]
        if sandbox.uid in self.budgets:
            return
        resources = container(key, self.draw.choice((0.5, 1, 1.5, 2, 3, 4, 9))).linux.resources
        living, heard = self.live[key], self.node.heard is not None
        if resources.cpu.shares.value != running.linux.resources.cpu.shares.value:
            living.unseen = not heard and (living.unseen or not living.noted)
        if self.node.heard is not None:
            self.node.apply(self.node.heard.update_container(sandbox, running, resources))
        running.linux.resources.cpu.shares.value = resources.cpu.shares.value
        self._answered()

    def another_owner_writes(self) -> None:
        """Over the runtime, as the kubelet does."""
        if not self.live or self.released:
            return
        key, taken, heard = self._a_container(), self._anothers(), self.node.heard
        sandbox, running = self.node.running[key]
        if self.node.cpus(key) == taken:
            return
        if heard is not None:
            self.node.apply(heard.update_container(sandbox, running, container(key, claim=str(taken)).linux.resources))
        running.linux.resources.cpu.cpus = str(taken)
        self.node.created[key] = self.node.cgroups[path_of(key)] = taken, self.node.machine.mems
        living = self.live[key]
        may_be_ours = living.opted_in or self.node.rules.everyone
        if heard is not None or not may_be_ours or living.foreign is not None:
            living.foreign, living.uncertain, living.limit = taken, False, None
        else:
            living.uncertain = True  # an owner that keeps cpusets writes again once the enforcer is there
        self._answered(written=not self._often(0.2))

    def a_member_is_moved(self) -> None:
        """Written down first, then carried out; the enforcer may be killed between the two."""
        if not self.node.attached or self.node.behind:
            return
        reservations = sorted(key for key, it in self.node.agent.occupancy.reservations.items() if it.opted_in)
        if not reservations:
            return
        key, target = self.draw.choice(reservations), self.draw.choice([*self.node.machine.cpu_nodes])
        source = str(self.node.agent.occupancy.reservations[key].numa_nodes)
        way = local.Moves.Way(reservation=key, source=source, target=str(target))
        offer = local.Moves(generation=1 << 32, traffic=1.0, pays=-9.0, steps=[local.Moves.Step(ways=[way])])
        before = self.node.agent.occupancy
        updates = self.node.agent.moves.make(offer.steps[0], offer)
        end = self.draw.choice(("made", "made", "killed", "lost", "refused"))
        if end == "refused":
            self._refused(offer.steps[0], updates, before)
            return
        self.node.push(updates, lost=end != "made")
        self._answered()
        if end == "killed":
            self.the_enforcer_is_killed()

    def _refused(self, step: local.Moves.Step, updates: list[nri.ContainerUpdate], before: Occupancy) -> None:
        """The kernel does not let some containers go; another one may come before the step is taken back."""
        failed = {update.container_id for update in updates if self._often(0.5)}
        self.node.push([update for update in updates if update.container_id not in failed])
        self.node.behind |= failed
        self._answered()
        if self._often(0.5):
            self.a_container_comes()
        if self.node.attached and failed:
            self.node.behind -= failed
            self.node.push(self.node.agent.moves.take_back(step, failed, before))
            self._answered()

    def an_operator_releases_or_resumes(self) -> None:
        if not self.node.attached:
            return
        self.released = not self.released
        if self.released:
            self.node.release(lost_after=self.draw.randint(0, 3) if self._often(0.3) else None)
        else:
            self.node.agent.resume()
            self.node.recorder.write()
            self._synchronize()
        self._answered()

    def what_a_workload_uses_is_learned(self) -> None:
        """No CPU changes by it."""
        sandbox = self._a_pod()
        if sandbox is None or not self.node.attached:
            return
        agent = self.node.agent
        before = agent.occupancy.allocations
        agent.used({agent.ledger.demands.workload(sandbox): self.draw.choice((50, 900, 2500, 6000))})
        assert agent.occupancy.allocations == before
        self._answered()

    def cpus_turn_hot_or_cool(self) -> None:
        """Members are let out or called home, and what the runtime is told of it may be lost."""
        if not self.node.attached or self.released:
            return
        agent = self.node.agent
        ledger, relief_ = agent.ledger, agent.relief
        every = relief.domains(ledger.machine, ledger.occupancy)
        if not every:
            return
        domain, hot = self.draw.choice(every), self._often(0.6)
        relief_._set_hot({domain.cpus.mask: hot})
        if hot:
            to = self.draw.choice([*relief.wider_sets(ledger.machine, ledger.occupancy, domain)] or [NumaSet()])
            leaving = [key for key in domain.inside if to and self._may_leave(key) and self._often(0.6)]
            out = {key: replace(ledger.occupancy.reservations[key], let_out=to) for key in leaving}
            ledger.occupancy = ledger.occupancy.changed(reservations=out) if out else ledger.occupancy
        else:
            relief_._call_home()
        end = self.draw.choice(("made", "made", "made", "killed", "lost"))
        self.node.push(ledger.settle(), lost=end != "made")
        self._answered()
        if end == "killed":
            self.the_enforcer_is_killed()

    def an_exclusive_one_comes_while_members_are_out(self) -> None:
        """Its CPUs may be those that they are let out to."""
        if not self.node.attached or self.released or len(self.live) >= self.most:
            return
        if not any(reservation.let_out for reservation in self.node.agent.occupancy.reservations.values()):
            return
        self.count += 1
        made = pod(f"p{self.count}", group=f"g{self.count % 2}", cpus="exclusive")
        made.namespace = self.draw.choice(NAMESPACES)
        self.pods[made.uid] = made
        self.node.run_sandbox(made)
        key = f"c{self.count}"
        asks = container(key, self.draw.choice((1, 2, 3, 4)), created_at=self.count)
        asks.pod_sandbox_id, asks.state = made.id, nri.CONTAINER_CREATED
        self.node.create(made, asks)
        self.live[key] = Living(made, "app", met=True)
        self.node.begin(key)
        self._answered(written=not self._often(0.2))

    def _may_leave(self, key: str) -> bool:
        ledger = self.node.agent.ledger
        live = ledger.occupancy.directory.by_reservation.get(key, ())
        requests = [ledger.requests[container] for container in live if container in ledger.requests]
        return len(requests) == len(live) > 0 and relief.may_leave(requests)

    def a_container_ends_and_the_answer_is_not_carried_out(self) -> None:
        """The kernel refuses what it asks for, of which the runtime says nothing."""
        if self.live and self.node.attached:
            key = self._a_container()
            self._ended(key)
            self.node.stop(key, lost=True, hung_up=False, sandbox=False)
            self._answered()

    def cgroups_are_read_back(self) -> None:
        """After three rounds each has what the ledger says, or is known not to: what was asked for once more may have
        been refused once more.
        """
        if not self.node.attached or self.released:
            return
        agent, refused = self.node.agent, {key for key in self.node.behind if self._often(0.3)}
        for _ in range(3):
            agent.read_back.begin()
            while True:
                self.node.push([up for up in agent.read_back.step() if up.container_id not in refused])
                if not agent.read_back.under_way:
                    break
        for key, living in self.live.items():
            allocation = agent.occupancy.allocations[key]
            may_be_set = living.ours or (self.node.rules.everyone and not living.anothers)
            if may_be_set and not allocation.externally_managed:
                said = allocation.cpus or self.node.machine.all_cpus
                told = key in agent.read_back.differences and agent.read_back.differences[key].lasts
                assert told or self.node.cpus(key) == said, f"{key} is on {self.node.cpus(key)}, said to be on {said}"
                if self.node.cpus(key) == said:
                    self.node.behind.discard(key)
        self._answered()

    def the_run_folder_fills_or_empties(self) -> None:
        (self.node.empty if self.full else self.node.fill)()
        self.full = not self.full

    def time_passes(self) -> None:
        if self.node.attached:
            self.node.agent.refresh()
            self.node.agent.prepare()
            self.node.push(self.node.agent.ledger.settle())
            self.node.push(self.node.agent.moves.second_best.improve())
            self._answered()

    def the_enforcer_is_killed(self) -> None:
        if self.unwritten:
            for living in self.live.values():
                living.uncertain |= (living.opted_in or self.node.rules.everyone) and living.foreign is not None
        for living in self.live.values():
            living.met &= living.noted
        self.unwritten = False
        self.stable.clear()
        self.node.kill()

    def the_enforcer_starts(self) -> None:
        """With other CPUs reserved, sometimes. Or, where it runs, the runtime's restart. The answer may be too late once
        more.
        """
        if self.node.agent is None:
            if self._often(0.2):
                self.node.reserved = self._some_reserved(self.node.machine.cpus)
            self.node.start(joined=False)
        self._synchronize(lost=self._often(0.2))

    def all_was_told_and_one_restarts(self) -> None:
        """Which changes nothing."""
        if not self.node.attached or self.node.behind or self.released or self.starting() or self.failed.attempts:
            return
        self.node.push(self.node.agent.ledger.settle())  # as every few seconds: a pod that is gone is in no cache
        before, cgroups = self.node.agent.occupancy, dict(self.node.cgroups)
        second_best = [key for key in self.live if self._is_second_best(key)]
        if self._often(0.7):
            self.node.recorder.write()
            self.node.kill()
            self.node.start(joined=False)
        updates = self._synchronize()
        after = self.node.agent.occupancy
        same = before.reservations.keys() & after.reservations.keys()
        lost = before.reservations.keys() - same
        fewer = any(before.reservations[key].demand != after.reservations[key].demand for key in same)
        if second_best or fewer or any(before.reservations[key].cache_domain for key in lost):
            return  # there may be more room by now: what has ended in a pod counts no more, nor a pod without containers
        assert not updates, f"a restart changes {sorted(update.container_id for update in updates)}"
        assert self.node.cgroups == cgroups
        for key, allocation in after.allocations.items():
            if self.live[key].ours:
                assert allocation == before.allocations[key]
                homes = (of.reservations[allocation.reservation] for of in (before, after))
                was, now = (_place(home, alone=bool(allocation.exclusive)) for home in homes)
                assert now == was


def _is_in(sandbox: nri.PodSandbox) -> bool:
    return "group.numakin.io" in sandbox.annotations


def _limited(cpus: int) -> nri.LinuxResources:
    """Of a pod, or of a container that was given its pod's: as many CPUs requested as its limit."""
    made = nri.LinuxResources()
    made.cpu.shares.value, made.cpu.period.value, made.cpu.quota.value = 1024 * cpus, 100_000, 100_000 * cpus
    made.memory.limit.value = GIB
    return made


def _place(reservation: Reservation, *, alone: bool) -> Reservation:
    """Without what it asks for, which may have been more while containers ran that have ended. alone: with CPUs of its
    own, it is let out to none.
    """
    return replace(reservation, demand=Demand(), let_out=NumaSet() if alone else reservation.let_out)


STEPS: Mapping[str, tuple[float, Callable[[History], None]]] = {
    step.__name__: (weight, step)
    for weight, step in (
        (6, History.a_pod_comes),
        (0.7, History.a_pause_process_dies),
        (20, History.a_container_comes),
        (3, History.a_container_starts),
        (2, History.what_failed_is_removed),
        (7, History.a_container_ends),
        (2, History.a_pod_ends),
        (0.7, History.a_sandbox_ends_before_its_containers),
        (2, History.a_container_is_resized),
        (1, History.a_pod_with_a_budget_is_resized),
        (1, History.the_extender_tells_of_a_budget),
        (1, History.another_owner_writes),
        (5, History.a_member_is_moved),
        (0.3, History.an_operator_releases_or_resumes),
        (0.5, History.the_run_folder_fills_or_empties),
        (2, History.time_passes),
        (1.5, History.the_enforcer_is_killed),
        (5, History.the_enforcer_starts),
        (4, History.all_was_told_and_one_restarts),
        (1, History.what_a_workload_uses_is_learned),
        (3, History.cpus_turn_hot_or_cool),
        (1, History.a_container_ends_and_the_answer_is_not_carried_out),
        (1.5, History.cgroups_are_read_back),
        (1.5, History.an_exclusive_one_comes_while_members_are_out),
    )
}
"""How often each happens, relative to the others."""
