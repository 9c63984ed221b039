"""The values of dynamo-platform: reads values.yaml with its comments; generates a JSON Schema, a table, and the list of
values that must not be null.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.generate.charts.constraints import CONSTRAINTS, DEFINITIONS, OF_A_SERVICE
from tools.generate.configuration import schema as settings_schema

MARK = "# -- "
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SERVICES, DEFAULTS, CONFIG = "services", "defaults", "config"


@dataclass(frozen=True, slots=True)
class Value:
    """One documented value: its path, its default and the comment above it."""

    path: tuple[str, ...]
    default: Any
    description: str


def documented(text: str) -> list[Value]:
    """Every value of a values.yaml that a comment with `# --` describes, in order."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return []
    return list(_documented(root, (), text.splitlines(), yaml.safe_load(text)))


def _documented(node: yaml.MappingNode, path: tuple[str, ...], lines: list[str], values: Any) -> Iterator[Value]:
    for key, child in node.value:
        inner = (*path, key.value)
        described = _comment(lines, key.start_mark.line)
        if described:
            yield Value(inner, values[key.value], described)
        elif isinstance(child, yaml.MappingNode):
            yield from _documented(child, inner, lines, values[key.value])


def _comment(lines: list[str], line: int) -> str:
    """The comment above a line, beginning at its `# --`; empty if there is none."""
    above: list[str] = []
    while line and lines[line - 1].strip().startswith("#"):
        line -= 1
        text = lines[line].strip()
        above.insert(0, text.removeprefix(MARK).removeprefix("#").strip())
        if text.startswith(MARK):
            return " ".join(above)
    return ""


def undocumented(text: str) -> list[str]:
    """Paths of values without a comment."""
    known = {value.path for value in documented(text)}
    return [
        ".".join(path)
        for path, _ in _leaves((), yaml.safe_load(text))
        if not any(path[:length] in known for length in range(1, len(path) + 1))
    ]


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    else:
        yield path, value


def required(text: str) -> str:
    """Paths of the values that must not be null: sections, and values whose default is neither empty nor a mapping.

    Helm omits a value that is null, and templates take it for false, for nothing, or for any port.
    """
    own = {value.path: value.default for value in documented(text)}
    sections = {path[:length] for path in own for length in range(1, len(path))} | {(CONFIG,)}
    values = {path for path, default in own.items() if default is False or (default and not isinstance(default, dict))}
    paths = sorted(".".join(path) for path in sections | values)
    lines = [f"- {path}" for path in paths if "null" not in CONSTRAINTS.get(path, {}).get("type", ())]
    return "\n".join(("# Made by `make generate` from values.yaml: values that must not be null.", *lines)) + "\n"


def table(text: str) -> str:
    """The values as a table in Markdown."""
    rows = (
        f"| `{'.'.join(value.path)}` | `{json.dumps(value.default)}` | {value.description.replace('|', chr(92) + '|')} |"
        for value in documented(text)
    )
    return "\n".join(("| value | default | what for |", "|---|---|---|", *rows)) + "\n"


def schema(text: str) -> str:
    """The JSON Schema of the values: no unknown values, and the settings' own schema for `config`."""
    values = yaml.safe_load(text)
    described = {value.path: value.description for value in documented(text)}
    properties = {key: _schema((key,), value, described) for key, value in values.items()}
    one = properties[DEFAULTS]["properties"]
    for service in properties[SERVICES]["properties"].values():
        service["properties"] = {**{name: {"$ref": f"#/$defs/service/{name}"} for name in one}, **service["properties"]}
    settings = json.loads(settings_schema())
    definitions = {f"settings{name}": _moved(each) for name, each in settings.pop("$defs").items()}
    properties[CONFIG] = {
        **properties[CONFIG],
        "additionalProperties": False,
        "properties": {
            name: _moved(each) for name, each in settings["properties"].items() if name not in ("apiVersion", "kind")
        },
    }
    # A parent chart passes both.
    properties["enabled"] = {"type": "boolean", "description": "For charts that include this one; not read here."}
    properties["global"].pop("additionalProperties", None)
    document = {
        "$schema": DIALECT,
        "title": "Values of dynamo-platform",
        "description": "Made by `make generate` from values.yaml and tools.generate.charts; change it there.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "$defs": {**DEFINITIONS, "service": one, **definitions},
    }
    return json.dumps(document, indent=2) + "\n"


def _schema(path: tuple[str, ...], value: Any, described: Mapping[tuple[str, ...], str]) -> dict[str, Any]:
    name = ".".join(path)
    head = {"description": described[path]} if path in described else {}
    constraint = CONSTRAINTS.get(name)
    if constraint is None and path[0] in (DEFAULTS, SERVICES):
        constraint = OF_A_SERVICE.get(".".join(path[1 if path[0] == DEFAULTS else 2 :]))
    if constraint is not None:
        return {**head, **constraint}
    if isinstance(value, dict):
        if not value:
            return {**head, "type": "object"}
        inner = {key: _schema((*path, key), each, described) for key, each in value.items()}
        return {**head, "type": "object", "additionalProperties": False, "properties": inner}
    kinds = {bool: "boolean", int: "integer", str: "string", list: "array"}
    return {**head, "type": kinds[type(value)]}


def _moved(node: Any) -> Any:
    """The settings' schema, with its definitions under another name."""
    if isinstance(node, list):
        return [_moved(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value.replace("#/$defs/", "#/$defs/settings") if key == "$ref" else _moved(value)
        for key, value in node.items()
    }


def readme(folder: Path, head: str) -> str:
    """A chart's README: its text, and the table of its values. ValueError if a value has no description."""
    values = (folder / "values.yaml").read_text(encoding="utf-8")
    if missing := undocumented(values):
        raise ValueError(
            f"{folder.name}/values.yaml: no comment describes {', '.join(missing)}; write one that begins with `{MARK}`"
        )
    return f"{head.rstrip()}\n\n## Values\n\n{table(values)}"
