from tests.extender.conftest import extender

__all__ = ["extender"]
