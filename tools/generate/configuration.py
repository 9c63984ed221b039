"""The page of the settings and their JSON Schema."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from dynamo_shared.api import durations
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.settings.loading import PREFIX
from dynamo_shared.runtime.settings.older_names import OLDER_NAMES
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tools.generate.json_schema import BASE, DIALECT, json_schema, text

PAGE = Path("docs/reference/configuration.md")
SCHEMA = Path("proto/schemas/configuration/OperatorConfiguration.json")
INTRODUCTION = """# Configuration

The configuration is one YAML file, `--config FILE`, of kind `OperatorConfiguration`. It has the fields of the reference
operator, with the same names and defaults, and a section `platform` for this platform. The environment variable next to
a field overrides it; its lists are comma-separated or JSON. Write durations as `30s`, `15m` or `1h30m`. An empty text
unsets an optional file, number or switch. All errors are reported at once.

```yaml
apiVersion: operator.config.dynamo.nvidia.com/v1alpha1
kind: OperatorConfiguration
platform:
  clusterName: local
  nats:
    servers: [nats://127.0.0.1:4222]
```

Editors that know YAML schemas help with
[OperatorConfiguration.json](../../proto/schemas/configuration/OperatorConfiguration.json).

<!-- Made by `make generate` from shared/src/dynamo_shared/runtime/settings; change it there. -->

| field | default | what for | variable |
|---|---|---|---|
"""
OLDER = """
## Older names

Variables and flags of earlier operators still work. Services warn of each at the start; the variables of the table above
have priority. `--natsAddr` and `--etcdAddr` are flags of `dynamoctl run`. Like in those operators, they are for workloads;
for the services' own NATS and etcd, use `platform.nats.servers` and `platform.etcd.endpoints`.

| older name | setting |
|---|---|
"""


def page() -> str:
    """The whole page."""
    fields = "".join(_row(*entry) for entry in _fields(Settings, (), ()))
    older = "".join(
        f"| `{name}` | {', '.join(f'`{setting}`' for setting in settings)} |\n"
        for name, settings in OLDER_NAMES.items()
    )
    return INTRODUCTION + fields + OLDER + older


def schema() -> str:
    """JSON Schema of the settings file, for editors and for programs that write it."""
    head = {"$schema": DIALECT, "$id": f"{BASE.rpartition('/')[0]}/configuration/{SCHEMA.name}"}
    return text({**head, **_readable(json_schema(Settings))})


def _readable(node: Any) -> Any:
    """A schema in which durations may be strings, and sections do not repeat the defaults of their fields."""
    if isinstance(node, list):
        return [_readable(each) for each in node]
    if not isinstance(node, dict):
        return node
    readable = {
        key: _readable(value) for key, value in node.items() if not (key == "default" and isinstance(value, dict))
    }
    if readable.pop("format", None) == "duration":
        readable |= {"type": ["number", "string"], "pattern": durations.PATTERN}
    return readable


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
    allowed = [str(value) for value in get_args(field.annotation)] if get_origin(field.annotation) is Literal else []
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


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with its content."""
    return {root / PAGE: page(), root / SCHEMA: schema()}
