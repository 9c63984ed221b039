"""The current public surface of the platform: the content of a release's file.

Kinds, registries and contracts come from the types. Events, commands and settings belong to layers above the API, so
they are read from the files that their generators write below `proto/`, which `make verify` compares with the code.
"""

import json
from pathlib import Path
from typing import Any

import yaml
from dynamo_shared.api import registry
from dynamo_shared.api.contracts import CONTRACTS
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.definition import Definition
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.deprecations import DEPRECATIONS
from dynamo_shared.api.registry.catalog import Catalog

from tools.generate.crds import subresources
from tools.generate.json_schema import document
from tools.releases.fields import facts

Snapshot = dict[str, Any]

_PREFIXES = {"events": "dynamo.evt.", "commands": "dynamo.cmd.", "state": "dynamo.state."}


def today(root: Path, release: str) -> Snapshot:
    """The surface of a checkout. FileNotFoundError if generated files are missing: run `make generate`."""
    return {
        "release": release,
        "kinds": {definition.kind: _kind(definition) for definition in DEFINITIONS},
        "labels": _names(registry.labels.CATALOG),
        "annotations": _names(registry.annotations.CATALOG),
        "environment": _names(registry.env.CATALOG),
        "ports": {
            name: f"{port.number} {port.name}".strip()
            for name, port in sorted(vars(registry.ports).items())
            if isinstance(port, registry.ports.Port)
        },
        "contracts": {contract.name: {"fields": facts(document(contract))} for contract in CONTRACTS},
        **_messages(root / "proto"),
        "settings": facts(_read(root / "proto" / "schemas" / "configuration" / "OperatorConfiguration.json")),
        "deprecations": [
            {
                "kind": kind,
                "version": each.version,
                "path": each.path,
                "since": each.since,
                "removedIn": each.removed_in,
            }
            for each in DEPRECATIONS
            for kind in each.kinds
        ],
    }


def _kind(definition: Definition) -> Snapshot:
    return {
        "plural": definition.resource.plural,
        "shortNames": list(definition.short_names),
        "scope": "Namespaced" if definition.resource.namespaced else "Cluster",
        "storage": definition.resource.version,
        "versions": {
            version.resource.version: {
                "subresources": subresources(version),
                "fields": facts(schema_of(version.resource)),
            }
            for version in definition.versions
        },
    }


def _names(catalog: Catalog) -> dict[str, str]:
    return {each.name: each.stability.value for each in sorted(catalog.entries, key=lambda entry: entry.name)}


def _messages(proto: Path) -> Snapshot:
    """Events and commands by name, each with its subject and its data."""
    document = yaml.safe_load((proto / "asyncapi.yaml").read_text(encoding="utf-8"))
    result: Snapshot = {section: {} for section in _PREFIXES}
    for name, channel in document["channels"].items():
        section = next((each for each, prefix in _PREFIXES.items() if channel["address"].startswith(prefix)), None)
        if section is None:
            continue
        schema = proto / "schemas" / f"{name}.json"
        result[section][name] = {
            "subject": channel["address"],
            "fields": facts(_read(schema)) if schema.is_file() else {},
        }
    result["envelope"] = {"cloudevent": {"fields": facts(_read(proto / "schemas" / "cloudevent.json"))}}
    return result


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
