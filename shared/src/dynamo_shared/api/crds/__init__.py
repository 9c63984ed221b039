"""CustomResourceDefinitions of the platform: package files, which `make generate` writes."""

from importlib.resources import files
from typing import Any

import yaml

__all__ = ["crd_files", "crd_manifests"]

#: The parser of libyaml, which is ten times as fast, or the Python parser if PyYAML was installed without libyaml.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def crd_files() -> dict[str, str]:
    """Text of each packaged CRD by its file name, sorted, as `kubectl apply -f` accepts it."""
    entries = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".yaml")]
    return {entry.name: entry.read_text(encoding="utf-8") for entry in sorted(entries, key=lambda entry: entry.name)}


def crd_manifests() -> list[dict[str, Any]]:
    """The packaged CRDs as objects; each call returns new ones."""
    return [yaml.load(text, _Loader) for text in crd_files().values()]  # noqa: S506 - both loaders are safe
