"""What the contract types share: how they are read, which names they have besides, and how they become JSON Schema."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, get_args

from pydantic import (
    AliasChoices,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    Strict,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from dynamo_shared.api.rules import Location

Problem = tuple[Location, str]
"""Where a rule is broken, and what to do about it."""


def _whole(value: Any) -> Any:
    """To JSON Schema 180.0 is an integer, and so it is here."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


OLDER_NAME_OF = "x-older-name-of"
"""Key of an older name in pydantic's schema: the type, and today's name. The published schema refers to that one."""

Whole = Annotated[int, Strict(), BeforeValidator(_whole)]
"""A whole number; a text of digits is not one."""


class ContractModel(BaseModel):
    """A part of a document whose shape Kubernetes does not check: unknown keys pass, and earn a warning."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        loc_by_alias=True,
        protected_namespaces=(),
    )

    #: Fields that nothing reads, each with what does its work instead: using one earns a warning.
    IGNORED: ClassVar[Mapping[str, str]] = {}

    #: Keys that are not fields and that authors write nevertheless, each with what is so instead.
    MISTAKEN: ClassVar[Mapping[str, str]] = {}

    def problems(self) -> Iterator[Problem]:
        """Rules between fields that this value breaks, each at the field to change."""
        return iter(())

    def remarks(self) -> Iterator[Problem]:
        """What is allowed and likely not meant."""
        return iter(())

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema of the fields, with their older names next to them."""
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        properties = schema.get("properties", {})
        for name, field in cls.model_fields.items():
            first, *older = names_of(name, field)
            properties |= {each: {OLDER_NAME_OF: [cls.__name__, first], "deprecated": True} for each in older}
        return reference


class CamelContractModel(ContractModel):
    """camelCase keys, which once were snake_case and still may be."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(
            validation_alias=lambda name: AliasChoices(*dict.fromkeys((to_camel(name), name)))
        )
    )


def unread(part: ContractModel) -> Iterator[Problem]:
    """Fields of a value that were given, and that nothing reads."""
    for name, instead in part.IGNORED.items():
        if name in part.model_fields_set:
            yield (name,), f"is ignored: {instead}"


def names_of(name: str, field: FieldInfo) -> tuple[str, ...]:
    """Every key under which a field may be written; the first one is today's."""
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(dict.fromkeys(str(each) for each in alias.choices))
    return (str(alias),) if alias is not None else (name,)


def model_of(annotation: Any) -> type[ContractModel] | None:
    """The contract type within an annotation such as `Sla | None`."""
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, ContractModel):
            return each
    return None
