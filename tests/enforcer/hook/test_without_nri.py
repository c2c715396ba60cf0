"""What is decided where the enforcer writes cpusets itself."""

from enforcer.hook.facts.pods import Claim
from numakin.placement.decide.decide import Reason
from numakin.placement.model.cpuset import CpuSet, NumaSet
from tests.enforcer.hook.world import World, container, member


class TestWithoutNri:
    """What bypass mode asks of it besides."""

    def test_a_cpuset_that_somebody_else_wrote_makes_it_yield(self, world: World) -> None:
        world.create(member("a"), container("a"))
        assert world.agent.taken_over(member("a"), container("a"), Claim("5", "1")) == []
        assert world.agent.records.counts["yielded"] == 1
        allocation = world.agent.occupancy.allocations["a"]
        assert (str(allocation.cpus), allocation.externally_managed) == ("5", True)
        assert world.agent.release() == []

    def test_exclusive_cpus_that_the_kernel_refused_are_everybodys_again(self, world: World) -> None:
        world.create(member("a"), container("a"))
        world.create(member("b", cpus="exclusive"), container("b", cpus=2))
        shrunk = CpuSet.parse(world.cpus("a"))
        world.cgroups["/kubepods/b"] = (CpuSet(), NumaSet())
        world.apply(world.agent.refused(member("b"), container("b"), "no space left"))
        assert shrunk != CpuSet.parse(world.cpus("a"))
        assert shrunk <= CpuSet.parse(world.cpus("a"))
        assert world.agent.records.counts["refused"] == 1
        assert [reason.effect for reason in world.last.reasons] == ["no space left"]

    def test_what_is_to_be_said_beside_a_decision_is_among_its_reasons(self, world: World) -> None:
        world.agent.ledger.remark = lambda decision: (Reason("late", "", f"on {decision.mems}"),)
        world.create(member("a"), container("a"))
        assert [reason.effect for reason in world.last.reasons if reason.what == "late"] == ["on 0"]
