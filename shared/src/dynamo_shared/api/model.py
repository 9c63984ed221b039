"""The base class and field types of all API types: validation, JSON form, and schemas for the CRD generator."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    Strict,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dynamo_shared.api import quantity
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_docs import describe
from dynamo_shared.api.field_errors import field_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.probes import PROBES

PRESERVE_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
#: Schema key for an embedded type of Kubernetes; CRDs do not contain it.
EMBEDDED = "x-dynamo-embedded"


def embedded(name: str, *optional: str) -> dict[str, Any]:
    """The schema of an embedded type of Kubernetes: any object for the API server, with the type in the key EMBEDDED.

    `name` is the type's name in the cluster's OpenAPI document; `optional` are paths of its required fields that an
    embedded object may lack, because the platform merges it with another one.
    """
    mark = {"type": name, "optional": list(optional)}
    return {"type": "object", PRESERVE_UNKNOWN: True, EMBEDDED: mark}


class ApiModel(BaseModel):
    """A part of a resource: snake_case here, camelCase on the wire, immutable.

    Unknown fields are refused, except with `extra="ignore"`. A field's docstring is its description in the CRD.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        loc_by_alias=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema of the fields, with their docstrings."""
        reference = handler(core_schema)
        describe(cls, handler.resolve_ref_schema(reference).get("properties", {}))
        return reference


def to_dict(model: ApiModel) -> KubeObject:
    """JSON form of a model, with wire names, without fields that are None, with defaults, like from the API server."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


#: Fields in which null has a meaning: the container has no probe, not even the platform's default.
NULLABLE_FIELDS = frozenset(PROBES)


def drop_nulls(value: Any) -> Any:
    """The value without null fields, except NULLABLE_FIELDS; the same object if it has none.

    The API server drops all null fields, except in embedded objects, which have the NULLABLE_FIELDS.
    """
    return _pruned(value) if _has_nulls(value) else value


#: A constant, because `isinstance(item, dict | list)` would create the union for each of thousands of values.
_HOLDERS = (dict, list)


def _has_nulls(value: Any) -> bool:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            for item in current.values():
                if isinstance(item, _HOLDERS):
                    pending.append(item)
                elif item is None and any(each is None and key not in NULLABLE_FIELDS for key, each in current.items()):
                    return True
        elif isinstance(current, list):
            pending += [item for item in current if isinstance(item, _HOLDERS)]
    return False


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None or key in NULLABLE_FIELDS}
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Reading:
    """Options of a validation, as its context. `clean`: nulls are already dropped. `embedded`: whether embedded types of
    Kubernetes are checked; callers that check them with the cluster's schemas set it to False.
    """

    clean: bool = False
    embedded: bool = True


_USUAL = Reading()


def as_written(shape: type[Any], *, own: bool = False) -> Any:
    """Field type for embedded objects: validated as `shape`, stored as the given dict without nulls.

    `shape` is a model or a TypedDict. With `own`, the object is validated also if the context disables `embedded`.
    """

    def keep(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        reading = info.context if isinstance(info.context, Reading) else _USUAL
        clean = value if reading.clean else drop_nulls(value)
        if own or reading.embedded or not isinstance(value, dict):
            handler(clean)
        return clean

    return Annotated[shape, WrapValidator(keep), PlainSerializer(lambda value: value, return_type=Any)]


class _QuantitySchema:
    """Validates a quantity (an int or a string) without changing it."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(value: Any) -> int | str:
            if isinstance(value, float):
                problem = {"value": value}
                raise PydanticCustomError("quantity", "must be an integer or a string; write '{value}'", problem)
            try:
                quantity.parse(value)
            except quantity.InvalidQuantity as error:
                raise PydanticCustomError("quantity", "{reason}", {"reason": str(error)}) from error
            return cast("int | str", value)

        return core_schema.no_info_plain_validator_function(check)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": quantity.PATTERN,
            "x-kubernetes-int-or-string": True,
        }


Quantity = Annotated[int | str, _QuantitySchema]
"""An amount such as `8Gi`; `dynamo_shared.api.quantity` parses and compares it."""


@dataclass(frozen=True)
class _Bits:
    """Bounds of an integer of `bits` bits, unless the field has narrower ones.

    The API server stores most integers beyond them, which clients that trust the format cannot read.
    """

    bits: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: dict[str, Any] = dict(handler(source))
        limit = 2 ** (self.bits - 1)
        return cast("CoreSchema", {"ge": -limit, "le": limit - 1, **schema})


_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


def _is_time(value: str) -> str:
    match = _TIME.fullmatch(value)
    try:
        if match:
            date.fromisoformat(match.group(1))
            return value
    except ValueError:
        pass
    problem = f"{value[:80]!r} is not a valid time; write it as 2026-11-21T05:00:00Z"
    raise PydanticCustomError("timestamp", "{problem}", {"problem": problem})


# Without coercion, like the API server: "3" is not an integer, and 1 is not a boolean.
Bool = Annotated[bool, Strict()]
Int = Annotated[int, Strict()]
Int32 = Annotated[int, Strict(), _Bits(32), Field(json_schema_extra={"format": "int32"})]
Int64 = Annotated[int, Strict(), _Bits(64), Field(json_schema_extra={"format": "int64"})]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Timestamp = Annotated[str, AfterValidator(_is_time), Field(json_schema_extra={"format": "date-time"})]
StringMap = dict[str, str]
if TYPE_CHECKING:
    FreeForm = dict[str, Any]
else:
    FreeForm = Annotated[dict[str, Any], WithJsonSchema({"type": "object", PRESERVE_UNKNOWN: True})]


def is_empty(value: Any) -> bool:
    """For `exclude_if`: omits empty values from the JSON form."""
    return not value


Model = TypeVar("Model", bound=ApiModel)


def parse(model: type[Model], obj: KubeObject) -> Model:
    """A stored object as a type, with defaults. Raises InvalidManifest with all errors."""
    try:
        return model.model_validate(obj, extra="ignore")
    except ValidationError as error:
        raise InvalidManifest(field_errors(error)) from error
