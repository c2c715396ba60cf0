from tests.enforcer.hook.world import world

__all__ = ["world"]
