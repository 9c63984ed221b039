"""Packages whose names are loaded when they are first used: a command line that needs one does not wait for all."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def names(package: str, **modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package that has names of its modules; `modules` are these modules, by name."""

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return attribute
