"""Loads kubernetes_asyncio's configuration code without its client.

`import kubernetes_asyncio.config` first runs the package's `__init__`, which imports the generated client: 945 modules,
66 MiB and a second, for two names that only its convenience functions use. So the configuration modules are imported
under a stand-in for the package that has nothing but its path, and `sys.modules` is restored afterwards: all other
importers of kubernetes_asyncio get the real package. Cost: 10 modules, 0.1 MiB, 6 ms.
"""

import importlib
import importlib.util
import sys
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

_PACKAGE = "kubernetes_asyncio"


class Upstream(NamedTuple):
    """The used modules; typed as Any because they are third-party and partly untyped."""

    kube_config: Any
    incluster_config: Any
    openid: Any
    exec_provider: Any


@cache
def load() -> Upstream:
    """Load the library's configuration modules. Raises ImportError if kubernetes_asyncio is not installed."""
    if f"{_PACKAGE}.client" in sys.modules:
        return _import()
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("kubernetes_asyncio is not installed", name=_PACKAGE)
    package = ModuleType(_PACKAGE)
    package.__path__ = list(spec.submodule_search_locations)
    client = ModuleType(f"{_PACKAGE}.client")
    # Needed only by signatures and by functions that are never called.
    client.ApiClient = client.Configuration = object  # type: ignore[attr-defined]
    before = _remove_modules()
    sys.modules[_PACKAGE] = package
    sys.modules[client.__name__] = client
    try:
        return _import()
    finally:
        _remove_modules()
        sys.modules.update(before)


def _import() -> Upstream:
    return Upstream(*(importlib.import_module(f"{_PACKAGE}.config.{name}") for name in Upstream._fields))


def _remove_modules() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]
    return {name: sys.modules.pop(name) for name in names}
