"""What may happen on a node. Each step draws what it needs from its own random numbers, so that a history that fails
can be played again without some of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from random import Random

from enforcer.hook import relief as relief_rounds
from numakin.placement.decide import relief
from numakin.placement.decide.relocation import MOST_FOLLOWING
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand, PodBudget
from numakin.placement.optin.quotas import KEYS, Quota
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.history.laws import LAWS
from tests.enforcer.history.truth import MOST_PODS, NAMESPACES, VM, WISHES, Living, Truth
from tests.enforcer.hook.changing import without
from tests.enforcer.hook.world import GIB, container, limited, path_of, pod

NOT_CREATED = ("has a conflict", "comes to nothing", "is undone")

FATES = (*("runs",) * 6, "starts later", "is being created", "fails", *NOT_CREATED)
"""What becomes of a creation."""

MIB = 1 << 20

CALM = relief_rounds.READINGS + 4
"""Readings after which what is idle is cool, and its members at home: of a cache domain within a NUMA node, too."""


class History(Truth):
    """Pods and containers come, fail, restart, are resized, moved and end, others write cpusets, the run folder is full
    or not, answers come too late, and the enforcer is killed and started at any point, also before it has written down
    what it answered.
    """

    def step(self, name: str, seed: int) -> None:
        """One thing happens, and all that must hold is looked at. AssertionError where something does not."""
        self.draw = Random(seed)
        self.node.moved.clear()
        STEPS[name][1](self)
        for law in LAWS:
            law(self)
        self._note_given()

    def _note_given(self) -> None:
        """What namespaces have by the ledger, which may be written down and told to nobody yet."""
        if self.node.agent is not None:
            held = self.node.agent.occupancy.allocations
            own = {key: held[key].exclusive for key in self.live if key in held}
            self.given = {name: sum(map(len, self.own_of(name, own))) for name in NAMESPACES}

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
            made.linux.pod_resources.CopyFrom(limited(budget))
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

    def _budget_to_resize(self, but: Collection[str] = ()) -> tuple[nri.PodSandbox, nri.LinuxResources] | None:
        """A pod, none of whose containers is being created, with what it asks for from now on. but: uids of others."""
        of = [uid for uid in sorted(self.pods) if uid in self.budgets and uid not in but]
        sandbox = self.pods[self.draw.choice(of)] if of else None
        if sandbox is None or any(self.live[key].pod.uid == sandbox.uid for key in self.node.creating):
            return None
        before, cpus = self.budgets[sandbox.uid], self.draw.choice((1, 2, 3, 4, 6))
        if cpus <= sum(own for _, own in before.slices) or cpus == before.cpus:
            return None
        self.budgets[sandbox.uid] = replace(before, cpus=cpus)
        return sandbox, limited(cpus)

    def _given_its_limit(self, sandbox: nri.PodSandbox) -> list[str]:
        budget = self.budgets[sandbox.uid]
        return [key for key, it in self.live.items() if it.pod.uid == sandbox.uid and not budget.slice_of(it.name)]

    def _lists(self, running: nri.Container, told: nri.LinuxResources) -> None:
        """The runtime does from now on, and the container's cpuset is what it was."""
        cpu = running.linux.resources.cpu
        claimed = nri.LinuxCPU(cpus=cpu.cpus, mems=cpu.mems)
        running.linux.resources.CopyFrom(told)
        running.linux.resources.cpu.cpus, running.linux.resources.cpu.mems = claimed.cpus, claimed.mems

    def a_pod_with_a_budget_is_resized(self) -> None:
        """The runtime says so of the pod before or after it does of the containers that were given its limit."""
        resized = self._budget_to_resize() if self.node.heard is not None else None
        if resized is None or self.node.heard is None:
            return
        (sandbox, told), pod_first = resized, self._often(0.5)
        if pod_first:
            self.node.heard.update_pod_sandbox(sandbox, told)
        for key in self._given_its_limit(sandbox):
            of_pod, running = self.node.running[key]
            self.node.apply(self.node.heard.update_container(of_pod, running, told))
            self._lists(running, told)
        if not pod_first:
            self.node.heard.update_pod_sandbox(sandbox, told)
        sandbox.linux.pod_resources.CopyFrom(told)
        self.resized_by_events.add(sandbox.uid)
        self.resized_by_word.discard(sandbox.uid)
        if sandbox.uid in self.told:
            self._tell_budget(sandbox)  # its word of before is no word of what it has now
        self._take_what_waits()
        self._answered()

    def the_extender_alone_tells_of_a_resize(self) -> None:
        """As of a runtime that has no event for it. What it changes goes at once where the runtime takes that, and else
        waits, though nothing else happens.
        """
        resized = self._budget_to_resize(but=self.resized_by_events) if self.node.agent is not None else None
        if resized is None or self.node.agent is None:
            return
        sandbox, told = resized
        self.resized_by_word.add(sandbox.uid)
        for key in self._given_its_limit(sandbox):
            self._lists(self.node.running[key][1], told)
        sandbox.linux.pod_resources.CopyFrom(told)
        self._tell_budget(sandbox)
        if self.node.at_any_time and self.node.attached:
            self.node.push(self.node.agent.moves.unsent_updates())
        self.node.lacks(self.node.agent.moves._unsent.values())
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
        """Or comes again, where one of that name has ended. Its creation may take its time, or fail: over another plugin's
        answer, or later, of which the runtime says nothing (CRI-O) or that it has stopped (containerd).
        """
        sandbox, name = self._a_pod(), self.draw.choice(("app", "app", "side"))
        taken = {(living.pod.uid, living.name) for living in self.live.values()}
        if sandbox is None or (sandbox.uid, name) in taken or len(self.live) >= self.most:
            return
        self.count += 1
        key, claim = f"c{self.count}", str(self._a_claim() or "")
        made = container(key, self.draw.choice((0.1, 1, 1, 1.5, 2, 3, 4)), claim=claim, created_at=self.count)
        made.name, made.pod_sandbox_id, made.state = name, sandbox.id, nri.CONTAINER_CREATED
        if (budget := self.budgets.get(sandbox.uid)) is not None:
            made.linux.resources.CopyFrom(limited(budget.slice_of(name) or budget.cpus))
            made.linux.resources.cpu.cpus = claim
        else:
            made.linux.resources.memory.limit.value = self._some_memory()
        fate = self.draw.choice(FATES)
        again = (sandbox.uid, name) in self.never_created
        heard, lost = self.node.attached, self._often(0.05)
        if heard:
            self.failed.tried_again(sandbox.uid, name)
        listed, under_way = fate not in NOT_CREATED, fate == "is being created"
        way = {"carried_out": fate != "has a conflict", "under_way": under_way}
        self.node.create(sandbox, made, listed=listed, lost=heard and lost, **way)
        if listed:
            foreign = self.node.set_to(key) if claim or sandbox.runtime_handler == VM else None
            limit = None
            if self.node.within_others and foreign == self.wide() and sandbox.runtime_handler != VM and _is_in(sandbox):
                foreign, limit = None, foreign
            left = again and heard and foreign is None and self._is_managed(key)
            self.live[key] = Living(sandbox, name, foreign, uncertain=left, met=heard and not lost, limit=limit)
        elif heard:
            self.never_created.add((sandbox.uid, name))
        if fate == "runs":
            self._begins(key)
        if fate == "fails":
            self._ended(key)
            self.node.fail(key)
        if fate == "is undone" and self.node.heard is not None:
            self.node.apply(self.node.heard.stop_container(sandbox, made))
        elif (fate == "fails" or not listed) and heard:
            self.failed.attempts[key] = sandbox, name
        self._answered(written=not self._often(0.2))

    def _some_memory(self) -> int:
        """Up to more than a NUMA node has."""
        return GIB * self.draw.choice((1, 1, 1, 4, 7, 12, 20))

    def _begins(self, key: str) -> None:
        """The start of one whose creation was under way when the enforcer came is the first that it hears of it."""
        new = self.node.attached and key not in self.node.agent.occupancy.allocations
        self.node.begin(key)
        if not self.node.attached:
            self.homes.pop(key, None)  # it has the cpuset of its creation, and nothing anywhere yet
        if new:
            self._shows(key)

    def _a_claim(self) -> CpuSet | None:
        """Another owner's on a container that is created, which is none of our pools."""
        if self.node.machine is not self.whole:
            return None
        if self._often(0.05):
            return self._anothers()
        return self.wide() if self._often(0.05) else None

    def a_container_starts(self) -> None:
        starting = self.starting()
        if not starting:
            return
        key = self.draw.choice(starting)
        if self._often(0.3):
            self.failed.attempts[key] = self.live[key].pod, self.live[key].name
            self._ended(key)
            self.node.fail(key)
        elif key in self.node.creating and self._often(0.5):
            self.node.finish(key)
        else:
            self._begins(key)
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
        if key := self._a_container():
            self._stop(key, lost=self._often(0.1))
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
        """Whether or not the runtime has somebody to tell, or gets the answer."""
        key = self._a_container()
        if not key:
            return
        sandbox, running = self.node.running[key]
        if sandbox.uid in self.budgets:
            return
        resources = container(key, self.draw.choice((0.5, 1, 1.5, 2, 3, 4, 9))).linux.resources
        resources.memory.limit.value = self._some_memory()
        living, heard = self.live[key], self.node.heard is not None
        if resources.cpu.shares.value != running.linux.resources.cpu.shares.value:
            living.unseen = not heard and (living.unseen or not living.noted)
        if not heard:
            self.homes.pop(key, None)  # it may be more than its NUMA node has by now
        if self.node.heard is not None:
            self.node.apply(self.node.heard.update_container(sandbox, running, resources), lost=self._often(0.1))
        running.linux.resources.cpu.shares.value = resources.cpu.shares.value
        running.linux.resources.memory.limit.value = resources.memory.limit.value
        self._answered()

    def containers_touch_memory(self) -> None:
        """Some of those that run, wherever they may by now."""
        sizes = (0, 100 * MIB, 200 * MIB, 300 * MIB, 5 * GIB, 20 * GIB)
        for key in sorted(self.live.keys() - {*self.starting()}):
            if self._often(0.5):
                self.node.pages[path_of(key)] = {node: self.draw.choice(sizes) for node in self.node.mems(key)}

    def another_owner_writes(self) -> None:
        """Over the runtime, as the kubelet does."""
        key, taken, heard = self._a_container(), self._anothers(), self.node.heard
        if not key or self.released or self.node.machine is not self.whole:
            return
        sandbox, running = self.node.running[key]
        if self.node.cpus(key) == taken:
            return
        written = nri.LinuxResources(cpu=nri.LinuxCPU(cpus=str(taken)))
        updates = heard.update_container(sandbox, running, written) if heard is not None else []
        running.linux.resources.cpu.cpus = str(taken)
        mems = self.node.machine.mems if key in self.starting() else self.node.cgroups[path_of(key)][1]
        self.node.created[key] = self.node.cgroups[path_of(key)] = taken, mems
        self.node.apply(updates, lost=self._often(0.2))
        living = self.live[key]
        may_be_ours = living.opted_in or self.node.rules.everyone
        if heard is not None or not may_be_ours or living.foreign is not None:
            living.foreign, living.uncertain, living.limit = taken, False, None
        else:
            living.uncertain = True  # an owner that keeps cpusets writes again once the enforcer is there
            self.homes.pop(key, None)  # what it has now may be what a move would have given it
        self._answered(written=not self._often(0.2))

    def members_are_moved(self) -> None:
        """One, or several that change places, written down first, then carried out; the enforcer may be killed between
        the two. A runtime that takes no updates at any time gets them with an answer. Who has CPUs of its own has some
        there, and no more memory follows than a runtime may wait for.
        """
        if not self.node.attached or self.node.behind:
            return
        occupancy = self.node.agent.occupancy
        reservations = sorted(key for key, it in occupancy.reservations.items() if it.opted_in)
        movers = self.draw.sample(reservations, min(self.draw.choice((1, 1, 2, 3, 4, 6)), len(reservations)))
        if not movers:
            return
        self.offered |= {occupancy.reservations[key].pod for key in movers}
        sources = [str(occupancy.reservations[key].numa_nodes) for key in movers]
        targets = [*sources[1:], sources[0]]  # a ring
        if len(movers) == 1 or self._often(0.5):
            targets = [str(self.draw.choice([*self.node.machine.cpu_nodes])) for _ in movers]
        step = local.Moves.Step(whole=len(movers) > 2)
        for key, source, target in zip(movers, sources, targets, strict=True):
            step.ways.add(reservation=key, source=source, target=target)
        offer = local.Moves(generation=1 << 32, traffic=1.0, pays=-9.0, holds_s=30.0, steps=[step])
        if not self.node.at_any_time:
            self.node.agent.moves.later(offer)
            return
        own = {key for key, held in occupancy.allocations.items() if held.exclusive}
        updates = self.node.agent.moves.make(step, offer)
        shares = [key for key in own if not self.node.agent.occupancy.allocations[key].exclusive]
        assert not shares, f"{shares} had CPUs of their own before a move"
        end = self.draw.choice(("made", "made", "killed", "lost", "refused"))
        if end == "refused":
            self._refused(step, updates, occupancy)
            return
        self.node.push(updates, lost=end != "made")
        followed = sum(self.node.moved.values())
        assert followed <= MOST_FOLLOWING, f"{followed >> 20} MiB were moved at once"
        self._answered()
        if end == "killed":
            self.the_enforcer_is_killed()

    def _refused(self, step: local.Moves.Step, updates: list[nri.ContainerUpdate], before: Occupancy) -> None:
        """The kernel does not let some containers go; another one may come before the step is taken back."""
        failed = {update.container_id for update in updates if self._often(0.5)}
        self.node.push([update for update in updates if update.container_id not in failed])
        self.node.lacks(update for update in updates if update.container_id in failed)
        self._answered()
        if self._often(0.5):
            self.a_container_comes()
        if self.node.attached and failed:
            self.node.caught_up(*failed)
            self.node.push(self.node.agent.moves.take_back(step, failed, before))
            self._answered()

    def an_operator_releases_or_resumes(self) -> None:
        if not self.node.attached:
            return
        self.released = not self.released
        if self.released and not self.node.at_any_time:
            self.node.agent.release()
            self.node.recorder.write()
            self._synchronize(lost=self._often(0.2))
        elif self.released:
            self.node.release(lost_after=self.draw.randint(0, 3) if self._often(0.3) else None)
        else:
            self.node.agent.resume()
            self.node.recorder.write()
            self._synchronize()
        self._answered()

    def an_operator_sets_a_quota(self) -> None:
        namespace, most = self.draw.choice(NAMESPACES), self.draw.choice((None, 0, 2, 4))
        all_but_one = frozenset(KEYS) - {self.draw.choice(("scope", "cpus", "memory", "span"))}
        self._set_quota(namespace, most, all_but_one if self._often(0.4) else None)

    def _set_quota(self, namespace: str, most: int | None, keys: frozenset[str] | None = None) -> None:
        """No CPU changes by it. What was given is had, though none may have heard of it yet."""
        self.quotas = {**self.quotas, namespace: Quota(most, keys=keys)}
        self.had[namespace] = max(self.had[namespace], self.given[namespace])
        agent = self.node.agent
        if agent is None:
            return
        before = agent.occupancy.allocations
        agent.limited(self.quotas)
        assert agent.occupancy.allocations == before
        if self.node.attached:
            self._answered()

    def a_quota_is_taken_away_from_who_waits_for_cpus(self) -> None:
        """Then there is room."""
        if not self.node.attached or self.released:
            return
        placed = self.live.keys() & self.node.agent.occupancy.allocations.keys()
        has_none = [key for key in sorted(placed) if self.live[key].ours and self._shares_instead(key)]
        others = {living.pod.uid for key, living in self.live.items() if key not in has_none}
        if not has_none or not others:
            return
        self._set_quota(self.live[self.draw.choice(has_none)].pod.namespace, 0)
        for key in [key for key, living in self.live.items() if living.pod.uid in others]:
            self._stop(key)
        self.time_passes()

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
        self.node.tell(ledger.settle(), lost=end != "made")
        self._answered()
        if end == "killed":
            self.the_enforcer_is_killed()

    def what_runs_gets_busy_or_idle(self) -> None:
        """For a minute or more. Members are let out of what is hot, in steps, and all are at home once nothing is."""
        if not self.node.attached or self.released:
            return
        agent, running = self.node.agent, self.live.keys() - {*self.starting()}
        wanted = {key: self.draw.choice((0.0, 0.1, 1.0, 6.0)) for key in sorted(running)}
        idle = self._often(0.4)
        agent.relief._clock = lambda: self.now
        for _ in range(CALM if idle else self.draw.choice((2, 4, CALM))):
            self.now += 5.0
            self.node.use(dict.fromkeys(self.live, 0.0) | ({} if idle else wanted), 5.0)
            self._refresh()
        if idle:
            out = [it.key for it in relief.members(agent.occupancy) if it.let_out]
            assert not out, f"{out} are not called home though nothing is busy"
        self._answered()

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
        self._begins(key)
        self._answered(written=not self._often(0.2))

    def _may_leave(self, key: str) -> bool:
        ledger = self.node.agent.ledger
        live = ledger.occupancy.directory.by_reservation.get(key, ())
        requests = [ledger.requests[container] for container in live if container in ledger.requests]
        return len(requests) == len(live) > 0 and relief.may_leave(ledger.occupancy, requests)

    def a_container_ends_and_the_answer_is_not_carried_out(self) -> None:
        """The kernel refuses what it asks for, of which the runtime says nothing."""
        key = self._a_container()
        if key and self.node.attached:
            self._ended(key)
            self.node.stop(key, lost=True, hung_up=False, sandbox=False)
            self._answered()

    def cgroups_are_read_back(self) -> None:
        """After three rounds each has what the ledger says, or is known not to: what was asked for once more may have
        been refused once more. Nothing is called refused that the runtime has not been asked for.
        """
        if not self.node.attached or self.released:
            return
        agent, refused = self.node.agent, {key for key in self.node.behind if self._often(0.3)}
        for _ in range(3):
            before = self._called_refused()
            agent.read_back.begin()
            while True:
                self.node.tell([up for up in agent.read_back.step() if up.container_id not in refused])
                if not agent.read_back.under_way:
                    break
            called = {*filter(agent.moves.waits, self._called_refused() - before)}
            assert not called, f"{called} are called refused, and the runtime was not asked for them"
        for key in sorted(self.live.keys() - self.unheard()):
            living, allocation = self.live[key], agent.occupancy.allocations[key]
            may_be_set = living.ours or (self.node.rules.everyone and not living.anothers)
            if may_be_set and not allocation.externally_managed:
                said = allocation.cpus or self.node.machine.all_cpus, allocation.mems or self.node.machine.all_mems
                there = self.node.cpus(key), self.node.mems(key)
                told = key in self._called_refused() or agent.moves.waits(key)
                told |= not allocation.cpus and key in self.node.behind  # what is open is read at Synchronize
                assert told or there == said, f"{key} is on {there}, said to be on {said}"
                if there == said:
                    self.node.caught_up(key)
        self._answered()

    def _called_refused(self) -> set[str]:
        return {key for key, each in self.node.agent.read_back.differences.items() if each.lasts}

    def the_run_folder_fills_or_empties(self) -> None:
        (self.node.empty if self.full else self.node.fill)()
        self.full = not self.full

    def cpus_or_memory_come_or_go(self) -> None:
        """Whether or not an enforcer is there to see it. The machine's first two cores stay, and some memory."""
        if not self.node.unified:
            return
        whole = self.whole
        cores = sorted({whole.core_of(cpu) for cpu in whole.cpus}, key=lambda core: core.lowest)
        gone, bare, half, offline = NumaSet(), NumaSet(), NumaSet(), CpuSet()
        if self._often(0.7):
            others = [*(whole.cpu_nodes | whole.all_mems)][1:]
            gone = NumaSet.of(node for node in others if self._often(0.2))
            bare = NumaSet.of(node for node in whole.all_mems if self._often(0.2))
            bare = NumaSet() if whole.all_mems <= bare | gone else bare
            half = NumaSet.of(node for node in whole.all_mems if self._often(0.2))
            share = self.draw.choice((0.0, 0.1, 0.3, 0.9))
            offline = CpuSet.of(cpu for core in cores[2:] if self._often(share) for cpu in core)
            if self._often(0.3):  # SMT is switched off
                offline = CpuSet.of(cpu for core in cores for cpu in [*core][1:])
        changed = without(whole, offline, bare, gone, half) if gone or bare or half or offline else whole
        lost = {
            self.live[key].pod.uid
            for key, cpus in self.stable.items()
            if not (cpus <= changed.cpus and self.node.cgroups[path_of(key)][1] <= changed.all_mems)
        }
        self.node.becomes(changed, lost=self._often(0.15))
        self.stable = {key: cpus for key, cpus in self.stable.items() if self.live[key].pod.uid not in lost}
        self._answered(written=not self._often(0.2))

    def memory_fills_or_comes_free(self) -> None:
        """And something may wait for it."""
        nodes = self.whole.all_mems
        self.node.used_memory = {node: GIB * self.draw.choice((0, 0, 0, 4, 14, 64)) for node in nodes}
        self.node.stalled = {node: self.draw.choice((0.0, 0.0, 0.3)) for node in nodes}

    def the_kubelet_tells_of_devices(self) -> None:
        """Free ones, by the NUMA node they are near to, which may be one that is not there."""
        if self.node.attached:
            said = local.Devices()
            for node in [*self.whole.cpu_nodes, 7]:
                said.free.add(
                    resource=self.draw.choice(("gpu", "nic")), numa_nodes=str(node), free=self.draw.randint(0, 3)
                )
            self.node.agent.ledger.take_devices(said)
            self.devices = {}
            for row in said.free:
                self.devices[row.resource] = self.devices.get(row.resource, 0) + row.free

    def _refresh(self) -> None:
        """The enforcer looks at the machine; what it opens goes at once where that is safe, and else waits. Nobody stays
        bound where no memory is left.
        """
        agent = self.node.agent
        agent.refresh()
        self.node.tell(agent.ledger.settle())
        if self.node.at_any_time:
            self.node.push(agent.moves.unsent_updates())
        self.node.lacks(agent.moves._unsent.values())
        for key, living in self.live.items():
            held = agent.occupancy.allocations.get(key)
            if living.ours and held is not None and held.mems and not self.node.machine.mems <= held.mems:
                left = sum(self.node.free_memory()[node] for node in held.mems)
                assert left, f"{key} is bound to NUMA nodes {held.mems}, which are full"

    def time_passes(self) -> None:
        if self.node.attached:
            self._refresh()
            self.node.agent.prepare()
            if self.node.at_any_time:
                self.node.push(self.node.agent.moves.second_best.improve())
            elif self.node.agent.moves.unsent and self._often(0.5):
                self._synchronize()  # it registers again
            self._answered()

    def the_enforcer_is_killed(self) -> None:
        self._note_given()
        if self.unwritten:
            for living in self.live.values():
                living.uncertain |= (living.opted_in or self.node.rules.everyone) and living.foreign is not None
        for living in self.live.values():
            living.met &= living.noted
        self.unwritten = False
        self.stable.clear()
        self.devices.clear()
        self.node.kill()

    def the_enforcer_starts(self) -> None:
        """With other CPUs reserved, sometimes. Or, where it runs, the runtime's restart. The answer may be too late once
        more.
        """
        if self.node.agent is None:
            if self._often(0.2):
                self.node.reserved = self._some_reserved(self.node.machine.cpus)
            self.node.start(joined=False)
            assert self.node.agent is not None
            self.node.agent.limited(self.quotas)  # the observer has them from the extender
        self._synchronize(lost=self._often(0.2))

    def all_was_told_and_one_restarts(self) -> None:
        """Which changes nothing."""
        if not self.node.attached or self.released or self.starting() or self.failed.attempts:
            return
        self.node.tell(self.node.agent.ledger.settle())  # as every few seconds: a pod that is gone is in no cache
        self._take_what_waits()
        self._answered()
        if self.node.behind:
            return
        before, cgroups = self.node.agent.occupancy, dict(self.node.cgroups)
        second_best = [key for key in self.live if self._is_second_best(key)]
        if self._often(0.7) and self.resized_by_word.isdisjoint(living.pod.uid for living in self.live.values()):
            self.node.recorder.write()
            self.devices.clear()
            self.node.kill()
            self.node.start(joined=False)
        updates = self._synchronize()
        after = self.node.agent.occupancy
        same = before.reservations.keys() & after.reservations.keys()
        lost = before.reservations.keys() - same
        fewer = any(_asks_less(after.reservations[key].demand, before.reservations[key].demand) for key in same)
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


def _asks_less(now: Demand, before: Demand) -> bool:
    """In any of its numbers."""
    return min(now.cpu_milli - before.cpu_milli, now.memory - before.memory) < 0 or now.hugepages != before.hugepages


def _is_in(sandbox: nri.PodSandbox) -> bool:
    return "group.numakin.io" in sandbox.annotations


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
        (1, History.the_extender_alone_tells_of_a_resize),
        (3, History.containers_touch_memory),
        (1, History.another_owner_writes),
        (5, History.members_are_moved),
        (0.3, History.an_operator_releases_or_resumes),
        (0.5, History.the_run_folder_fills_or_empties),
        (2, History.time_passes),
        (1.5, History.the_enforcer_is_killed),
        (5, History.the_enforcer_starts),
        (4, History.all_was_told_and_one_restarts),
        (1, History.an_operator_sets_a_quota),
        (4, History.a_quota_is_taken_away_from_who_waits_for_cpus),
        (1, History.what_a_workload_uses_is_learned),
        (3, History.cpus_turn_hot_or_cool),
        (1, History.a_container_ends_and_the_answer_is_not_carried_out),
        (1.5, History.cgroups_are_read_back),
        (1.5, History.an_exclusive_one_comes_while_members_are_out),
        (1.5, History.what_runs_gets_busy_or_idle),
        (1.5, History.cpus_or_memory_come_or_go),
        (2, History.memory_fills_or_comes_free),
        (1, History.the_kubelet_tells_of_devices),
    )
}
"""How often each happens, relative to the others."""
