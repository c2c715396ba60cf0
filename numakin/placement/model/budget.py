"""A pod's own CPU budget (`spec.resources`, pod-level resources), which its containers share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """cpus: the pod's CPU request, in whole CPUs, rounded up. slices: by name those containers that ask for whole CPUs
    by themselves, request and limit alike, and how many; the others share the rest, as the kubelet has it for exclusive
    CPUs (KEP-5526).
    """

    cpus: int
    slices: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, cpu_milli: int, slices: dict[str, int]) -> Budget:
        """A slice as large as the whole budget is none: that container shares it with those that ask for nothing."""
        cpus = max(1, -(-cpu_milli // 1000))
        return cls(cpus, tuple(sorted((name, size) for name, size in slices.items() if 0 < size < cpus)))

    def slice_of(self, container: str) -> int:
        """CPUs that the container of this name has for itself; 0: it shares what the others leave."""
        return dict(self.slices).get(container, 0)
