"""`python -m dynamo_shared.runtime.generate [--check]`: docs/configuration.md from the types of the settings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.settings.loading import PREFIX

PAGE = Path("docs/configuration.md")
INTRODUCTION = """# Configuration

One YAML file, `--config FILE`, of kind `OperatorConfiguration`. The fields are the reference operator's, with its names
and defaults; the `platform` section is ours. Every field can be overridden by the environment variable beside it; lists
are comma separated or JSON there. Durations are written as `30s`, `15m` or `1h30m`. What is wrong is told all at once.

```yaml
apiVersion: operator.config.dynamo.nvidia.com/v1alpha1
kind: OperatorConfiguration
platform:
  clusterName: local
  nats:
    servers: [nats://127.0.0.1:4222]
```

<!-- Made by `make generate` from shared/src/dynamo_shared/runtime/settings; change it there. -->

| field | default | what for | variable |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(_row(*entry) for entry in _fields(Settings, (), ()))


def _fields(
    model: type[BaseModel], path: tuple[str, ...], variable: tuple[str, ...]
) -> Iterator[tuple[str, str, FieldInfo]]:
    for name, field in model.model_fields.items():
        inner, named = (*path, field.alias or name), (*variable, name.upper())
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _fields(annotation, inner, named)
        elif path:  # apiVersion and kind stand above
            yield ".".join(inner), PREFIX + "__".join(named), field


def _row(path: str, variable: str, field: FieldInfo) -> str:
    allowed = [str(value) for value in get_args(field.annotation)] if "Literal" in str(field.annotation) else []
    choices = f" One of {', '.join(f'`{value}`' for value in allowed if value not in {'', 'None'})}." if allowed else ""
    return f"| `{path}` | {_default(field)} | {field.description}{choices} | `{variable}` |\n"


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if get_origin(field.annotation) is tuple:
        value = ", ".join(value)
    if value is None or value in ("", {}):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{getattr(value, 'value', value)}`"


def main() -> int:
    """Write the page, or with --check say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page is out of date")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the project")
    options = parser.parse_args()
    file: Path = options.root / PAGE
    if options.check:
        if file.exists() and file.read_text() == page():
            return 0
        print(f"{PAGE} is out of date: run `make generate`", file=sys.stderr)
        return 1
    file.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
