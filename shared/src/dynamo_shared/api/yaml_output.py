"""YAML as Kubernetes' own tools read it."""

import re
from typing import Any

import yaml

# kubectl's parser takes more plain words for booleans and numbers than PyYAML does: `y`, `12e5`, `0o17`. A worker hash
# such as 12345e67 must stay a text there, too, so everything that could be a number is quoted.
_AMBIGUOUS = re.compile(r"[yYnN]|[-+.]?(?:0[xXoObB])?[0-9][0-9a-fA-F_.]*(?:[eE][-+]?[0-9]+)?")


# libyaml's emitter is several times faster, and only wheels for rare platforms come without it.
_Base: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc, valid-type]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """What occurs twice is written twice, as people expect of manifests."""
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
    """Objects as YAML, several as several documents."""
    text: str = yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True, explicit_start=len(objects) > 1
    )
    return text
