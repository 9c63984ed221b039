"""Packages that import the module of a public name at its first use (PEP 562), so that commands start fast."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def names(package: str, **modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `modules` has, for each public name, the module of the package that defines it.

    The function raises AttributeError for other names.
    """

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return attribute
