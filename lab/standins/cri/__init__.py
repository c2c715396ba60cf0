"""A container runtime without NRI for tests: CRI over a real unix socket, and cgroups that are plain files."""

from lab.standins.cri.runtime import CriRuntime

__all__ = ["CriRuntime"]
