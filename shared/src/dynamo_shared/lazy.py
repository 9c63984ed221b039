"""Packages that import the module of a public name at its first use (PEP 562), so that commands start fast."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def names(package: str, **modules: tuple[str, ...]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `modules` has the public names that each of its modules defines.

    The function raises AttributeError for other names.
    """
    homes = {name: module for module, defined in modules.items() for name in defined}

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute
