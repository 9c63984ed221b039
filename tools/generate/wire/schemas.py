"""JSON Schemas of the data on the wire, from the Structs that encode and decode it."""

import ast
from collections.abc import Iterator
from inspect import cleandoc, getsource
from typing import Any

import msgspec
from dynamo_shared.state import messages
from dynamo_shared.wire import cloudevents
from dynamo_shared.wire.specifications import BY_TYPE
from dynamo_shared.wire.specifications.base import CommandSpec, EventSpec
from msgspec import inspect as types

SPEC_MODULES = "dynamo_shared.wire.specifications."
DIALECT = "https://json-schema.org/draft/2020-12/schema"

#: Descriptions of fields without a text of their own, by names that mean the same everywhere.
COMMON = {
    "name": "name of the object",
    "namespace": "namespace of the object",
    "reason": "why, in one word that programs can compare",
    "message": "why, in words for people, which may change",
    "generation": "metadata.generation of the object",
    "backend_framework": "`vllm`, `sglang` or `trtllm`; empty where the object names none",
    "dynamo_namespace": "namespace in Dynamo's own discovery",
    "component": "name of a component of the graph",
    "pod": "its name",
    "pod_uid": "metadata.uid of the pod",
}


def schemas() -> dict[str, dict[str, Any]]:
    """All schemas, by file name without its ending: the envelope, the marker, and the data of each event and command.

    The names of the last group are the ends of the envelope's `dataschema`.
    """
    schemas = {"cloudevent": _schema(cloudevents.Event, "cloudevent", "CloudEvents 1.0 envelope")}
    schemas["state.synced"] = _schema(
        messages.SyncedMarker, "state.synced", "The marker of a complete resource in STATE"
    )
    for spec in BY_TYPE.values():
        name = file_name(spec)
        schemas[name] = _schema(spec.data, name, spec.description)
    return schemas


def file_name(spec: EventSpec | CommandSpec) -> str:
    """`deployment.ready.v1` for `com.nvidia.dynamo.deployment.ready.v1`."""
    return spec.type.removeprefix(f"{cloudevents.TYPE_PREFIX}.")


def _schema(type_: Any, name: str, title: str) -> dict[str, Any]:
    (root,), components = msgspec.json.schema_components([type_], ref_template="#/$defs/{name}")
    key = root.get("$ref", "").rpartition("/")[2]
    for struct in _structs(types.type_info(type_)):
        properties = components[struct.__name__]["properties"]
        for field, meaning in _meanings(struct).items():
            properties[field] = {"description": meaning, **properties[field]}
    top = _unindented(components.pop(key, root))
    text = {"$schema": DIALECT, "$id": f"{cloudevents.SCHEMA_BASE}/{name}.json", **top, "title": title}
    if components:
        text["$defs"] = {part: _unindented(components[part]) for part in sorted(components)}
    return text


def _structs(info: types.Type) -> Iterator[type[msgspec.Struct]]:
    """The Structs of this project in a type, without the envelope's attributes, which CloudEvents describes."""
    match info:
        case types.StructType(cls=cls) if cls.__module__.startswith(SPEC_MODULES):
            yield cls
            for field in info.fields:
                yield from _structs(field.type)
        case types.ListType(item_type=inner) | types.DictType(value_type=inner):
            yield from _structs(inner)


def _meanings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The text below each field, or the common text, by the field's name on the wire."""
    names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    texts = {name: COMMON[name] for name in names if name in COMMON}
    (declared,) = ast.parse(getsource(struct)).body
    assert isinstance(declared, ast.ClassDef)
    for field, below in zip(declared.body, declared.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = cleandoc(text)
    return {names[name]: text for name, text in texts.items()}


def _unindented(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose description, a docstring, has no indentation, as in Python 3.13."""
    return {**schema, "description": cleandoc(schema["description"])} if "description" in schema else schema
