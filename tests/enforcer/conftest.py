from tests.enforcer.occupied import memory_cgroups
from tests.enforcer.running import enforcer, runtime

__all__ = ["enforcer", "memory_cgroups", "runtime"]
