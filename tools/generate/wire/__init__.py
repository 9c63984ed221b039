"""The AsyncAPI document, schemas, golden messages and docs/reference/events.md, from the tables of the bus."""

import json
from pathlib import Path
from typing import Any

import msgspec

from tools.generate.files import yaml_text
from tools.generate.wire import asyncapi, pages, samples, schemas

VERSION = "1.0.0"
"""Version of the wire contract: the last number changes with texts, the middle one with additions, the first one with a
v2 of the subjects.
"""

_HEADER = "# Generated from dynamo_shared.wire by `make generate`. Do not edit.\n"
FOLDERS = (("proto/schemas", "*.json"), ("proto/golden", "*.json"))


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with its content."""
    proto = root / "proto"
    document = yaml_text(asyncapi.document(VERSION))
    texts = {proto / "asyncapi.yaml": _HEADER + document}
    texts |= {proto / "schemas" / f"{name}.json": _json(schema) for name, schema in schemas.schemas().items()}
    texts |= {
        proto / "golden" / f"{name}.json": _json(msgspec.to_builtins(message))
        for name, message in samples.golden().items()
    }
    return texts | {root / "docs" / "reference" / "events.md": pages.events()}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
