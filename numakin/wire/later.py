"""Modules of libraries that are loaded at their first use."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """Stands for a module of a library that imports it and, here, never uses it; the module itself where it does.

    mentioned: what stands for itself meanwhile, as something that can be called.
    """

    mentioned: Collection[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name in self.mentioned:
            return partial(_called, self.__name__, name)
        if name == "__path__" and self.mentioned:  # `from ... import` asks whether it is a package
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        return getattr(import_module(self.__name__), name)


def later(name: str) -> None:
    """Nothing where it is loaded already."""
    sys.modules.setdefault(name, Later(name))


@contextmanager
def mentioned(name: str, *attributes: str) -> Iterator[None]:
    """For the import of a library that mentions these of a module, in annotations or in `from ... import`, and here
    never uses them: the module is loaded when one of them is called, or when it is asked for something afterwards.
    Nothing where it is loaded already.
    """
    later(name)
    module = sys.modules[name]
    if isinstance(module, Later):
        module.mentioned = attributes
    yield
    if isinstance(module, Later):
        module.mentioned = ()


def _called(module: str, name: str, *arguments: Any, **named: Any) -> Any:
    return getattr(import_module(module), name)(*arguments, **named)
