from tests.enforcer.running import enforcer, runtime

__all__ = ["enforcer", "runtime"]
