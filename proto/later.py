"""Modules of libraries that are loaded when somebody first asks them for something."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """Stands for a module of a library that imports it and, here, never uses it; the module itself where it does."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        return getattr(import_module(self.__name__), name)


def later(name: str) -> None:
    """Nothing where it is loaded already."""
    sys.modules.setdefault(name, Later(name))
