"""YAML output that tools of Kubernetes read correctly."""

import re
from typing import Any

import yaml

# kubectl's parser reads more unquoted words as booleans and numbers than PyYAML: `y`, `12e5`, `0o17`. So all strings that
# could be a number are quoted, for example the worker hash 12345e67.
_AMBIGUOUS = re.compile(r"[yYnN]|[-+.]?(?:0[xXoObB])?[0-9][0-9a-fA-F_.]*(?:[eE][-+]?[0-9]+)?")


# libyaml's emitter is several times faster; wheels for rare platforms lack it.
_Base: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc, valid-type]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Always: a repeated value is repeated in the output, without anchors and aliases."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style: str | None
    if not value.isprintable() and not value.replace("\n", "").isprintable():
        style = '"'
    elif _AMBIGUOUS.fullmatch(value):
        style = "'"
    else:
        style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(*objects: Any) -> str:
    """Objects as YAML, each as one document."""
    text: str = yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True, explicit_start=len(objects) > 1
    )
    return text
