"""Page of the contracts: documents within this project's objects, with their fields and schemas."""

import json

from dynamo_shared.api.contracts import CONTRACTS, Contract

from tools.generate.json_schema import document, file_name
from tools.generate.reference.fields import SchemaField, fields, limits_of, type_of
from tools.generate.reference.markdown import code, page, table

SOURCE = "shared/src/dynamo_shared/api/contracts"


def contracts_page() -> str:
    """Every contract with its fields. A contract within another one is described only once."""
    return page(
        "Contracts",
        SOURCE,
        "Documents inside the platform's objects and variables, for which Kubernetes has no schema. Each has a JSON Schema "
        "(draft 2020-12) in [proto/schemas/contracts](../../proto/schemas/contracts). Other keys are kept, and admission warns "
        "of them.",
        *(part for each in CONTRACTS for part in _contract(each)),
    )


def _contract(contract: Contract) -> list[str]:
    schema = document(contract)
    # A contract within this one has its own table.
    nested = {"config": "profilingConfig.config", "planner": "features.planner"}
    inner = [name for name in nested if name in schema["properties"] and nested[name] != contract.name]
    rows = [
        (
            code(each.path),
            type_of(each.schema),
            "yes" if each.required else "",
            _default(each),
            "; ".join(limits_of(each.schema)),
            str(each.schema.get("description", "")),
        )
        for each in fields(schema)
        if not each.is_element
        and not each.schema.get("deprecated")
        and not any(each.path.startswith(f"{name}.") for name in inner)
    ]
    example = json.dumps(max(contract.examples, key=lambda each: len(json.dumps(each))), indent=2)
    file = file_name(contract)
    return [
        f"## {contract.name}",
        f"{contract.description} {contract.place} Schema: [{file}](../../proto/schemas/contracts/{file}).",
        table(("Field", "Type", "Required", "Default", "Allowed", "Description"), rows),
        *(f"Fields of `{name}`: [{nested[name]}](#{_anchor(nested[name])})." for name in inner),
        f"```json\n{example}\n```",
    ]


def _default(field: SchemaField) -> str:
    value = field.schema.get("default")
    return "" if value is None or value in ({}, []) or isinstance(value, dict) else code(json.dumps(value))


def _anchor(title: str) -> str:
    return title.lower().replace(".", "")
