"""Compiles the types of an OpenAPI v3 document to functions that check values.

Each type is compiled at its first use. The rules are those of the API server: null means absent, unknown fields are
errors, and `required` is checked (with the exceptions below). Unknown parts of a schema are not checked,
because the API server checks the object anyway.
"""

from collections.abc import Mapping
from typing import Any

from dynamo_shared.api.embedded import scalars
from dynamo_shared.api.embedded.composites import Fields, list_of, map_of, object_of
from dynamo_shared.api.embedded.findings import Check, FindingsLimit, Problems
from dynamo_shared.api.embedded.rules.fields import CORE, FIELD_RULES
from dynamo_shared.api.embedded.rules.objects import OBJECT_RULES

#: Fields that are published as required, but may be missing.
NOT_REQUIRED: dict[str, frozenset[str]] = {
    f"{CORE}ClusterTrustBundleProjection": frozenset({"path"}),
    f"{CORE}HTTPHeader": frozenset({"value"}),
    f"{CORE}ISCSIVolumeSource": frozenset({"lun"}),
    f"{CORE}PreferredSchedulingTerm": frozenset({"preference"}),
    f"{CORE}ScaleIOVolumeSource": frozenset({"secretRef"}),
    f"{CORE}SleepAction": frozenset({"seconds"}),
    f"{CORE}Sysctl": frozenset({"value"}),
}

#: Fields that are published as optional, but are required.
REQUIRED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        [f"{CORE}{prefix}{suffix}" for prefix in ("ConfigMap", "Secret") for suffix in ("EnvSource", "KeySelector")],
        ("name",),
    ),
    f"{CORE}ConfigMapVolumeSource": ("name",),
    f"{CORE}ExecAction": ("command",),
    f"{CORE}ConfigMapProjection": ("name",),
    f"{CORE}SecretProjection": ("name",),
    f"{CORE}SecretVolumeSource": ("secretName",),
}

#: Lists whose items may have the same key. The last of such variables counts; the platform merges them.
REPEATABLE = frozenset({(f"{CORE}Container", "env"), (f"{CORE}EphemeralContainer", "env")})

Schema = Mapping[str, Any]

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_REFERENCE = "#/components/schemas/"
_NONE: frozenset[str] = frozenset()
_PLAIN: dict[Any, tuple[type, Check]] = {"string": (str, scalars.string), "boolean": (bool, scalars.boolean)}
_TEXT_FORMATS: dict[str, Check] = {"date-time": scalars.time, "byte": scalars.base64_bytes}


class Types:
    """The types of one or more documents, by name."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._checks: dict[tuple[str, frozenset[str]], Check] = {}

    def check(self, name: str, optional: frozenset[str] = _NONE, known: frozenset[str] = _NONE) -> Check | None:
        """The check of a type; None if no document has it.

        `optional` are dotted paths of required fields that may be missing; `known` are fields that the type lacks, and
        that are checked elsewhere.
        """
        if name not in self._schemas:
            return None
        if not known:
            return self._named(name, optional)
        return self._object(self._schemas[name], optional, name, known)

    def _named(self, name: str, optional: frozenset[str]) -> Check:
        key = (name, optional)
        if key not in self._checks:

            def later(value: Any, budget: FindingsLimit) -> Problems:
                return self._checks[key](value, budget)

            # A recursive type uses this while its check is being compiled.
            self._checks[key] = later
            self._checks[key] = self._compile(self._schemas.get(name, {}), optional, name)
        return self._checks[key]

    def _compile(self, schema: Schema, optional: frozenset[str], name: str = "") -> Check:
        if name == QUANTITY:
            return scalars.amount
        if (target := _referred(schema)) is not None:
            return self._named(target, optional)
        if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
            return scalars.int_or_string
        match schema.get("type"):
            case "object":
                return self._object(schema, optional, name)
            case "array":
                return self._list(schema, optional)
            case "integer":
                return scalars.integer(schema.get("format", ""))
            case "number":
                return scalars.number
            case "boolean":
                return scalars.boolean
            case "string":
                if "enum" in schema:
                    return scalars.choice(schema["enum"])
                return _TEXT_FORMATS.get(schema.get("format", ""), scalars.string)
        return scalars.anything

    def _list(self, schema: Schema, optional: frozenset[str]) -> Check:
        items = schema.get("items", {})
        keys: tuple[tuple[str, Any], ...] = ()
        if schema.get("x-kubernetes-list-type") == "map":
            properties = self._resolved(items).get("properties", {})
            keys = tuple(
                (key, properties.get(key, {}).get("default") or None)
                for key in schema.get("x-kubernetes-list-map-keys", ())
            )
        empty: dict[str, Any] | None = {} if self._resolved(items).get("type") == "object" else None
        return list_of(self._compile(items, optional), keys, empty)

    def _object(self, schema: Schema, optional: frozenset[str], name: str, known: frozenset[str] = _NONE) -> Check:
        properties: Mapping[str, Schema] = schema.get("properties", {})
        others = schema.get("additionalProperties")
        if not properties and not known:
            return map_of(self._compile(others, optional) if isinstance(others, Mapping) else scalars.anything)
        fields = Fields(open=bool(others) or bool(schema.get("x-kubernetes-preserve-unknown-fields")))
        for field, child in properties.items():
            self._field(fields, field, child, _below(field, optional), name)
        for field in known:
            fields.checked[field] = scalars.anything
        required = [*schema.get("required", ()), *REQUIRED.get(name, ())]
        never = optional | NOT_REQUIRED.get(name, _NONE)
        fields.required = tuple(field for field in required if field in properties and field not in never)
        fields.rules = OBJECT_RULES.get(name, ())
        return object_of(fields)

    def _field(self, fields: Fields, field: str, schema: Schema, optional: frozenset[str], owner: str) -> None:
        rule = FIELD_RULES.get((owner, field))
        plain = _PLAIN.get(schema.get("type")) if not {"enum", "format"} & schema.keys() else None
        if plain is not None and rule is None:
            fields.plain[field], fields.checked[field] = plain
            return
        if (owner, field) in REPEATABLE:
            schema = {**schema, "x-kubernetes-list-type": "atomic"}
        check = self._compile(schema, optional)
        fields.checked[field] = check if rule is None else _both(check, rule)
        kind = self._resolved(schema).get("type")
        if kind in ("string", "array"):
            fields.emptiable.add(field)

    def _resolved(self, schema: Schema) -> Schema:
        followed = set()
        while (target := _referred(schema)) is not None and target not in followed:
            followed.add(target)
            schema = self._schemas.get(target, {})
        return schema


def _referred(schema: Schema) -> str | None:
    """Name of the type that a schema refers to, also within `allOf` (with a default)."""
    wrapped = schema.get("allOf")
    if wrapped and len(wrapped) == 1:
        schema = wrapped[0]
    reference = schema.get("$ref")
    return reference.removeprefix(_REFERENCE) if isinstance(reference, str) else None


def _below(field: str, paths: frozenset[str]) -> frozenset[str]:
    return (
        frozenset(path.removeprefix(f"{field}.") for path in paths if path.startswith(f"{field}.")) if paths else _NONE
    )


def _both(check: Check, rule: Check) -> Check:
    """Both checks; the rule only for values of the right type."""

    def both(value: Any, budget: FindingsLimit) -> Problems:
        return check(value, budget) or rule(value, budget)

    return both
