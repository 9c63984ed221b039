"""Common parts of the contract types: how they are read, their older names, and their JSON Schema."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, get_args

from pydantic import AliasChoices, AliasGenerator, BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, Strict
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from dynamo_shared.api.field_docs import describe
from dynamo_shared.api.rules import Location

Problem = tuple[Location, str]
"""Location of a violation, and what to do about it."""


def _whole(value: Any) -> Any:
    """In JSON Schema 180.0 is an integer, so it is accepted here, too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


OLDER_NAME_OF = "x-older-name-of"
"""Key of an older name in pydantic's schema: the type, and the current name. The published schema refers to the current name."""

Whole = Annotated[int, Strict(), BeforeValidator(_whole)]
"""A whole number; a string of digits is not accepted."""


class ContractModel(BaseModel):
    """A part of a document that Kubernetes does not validate: unknown keys are accepted with a warning."""

    model_config = ConfigDict(
        extra="allow", frozen=True, validate_by_alias=True, loc_by_alias=True, protected_namespaces=()
    )

    #: Fields that nothing reads, each with its replacement: a use causes a warning.
    IGNORED: ClassVar[Mapping[str, str]] = {}

    #: Keys that are not fields but that authors often write, each with the correct information.
    MISTAKEN: ClassVar[Mapping[str, str]] = {}

    def problems(self) -> Iterator[Problem]:
        """Violated rules between fields, each at the field to change."""
        return iter(())

    def remarks(self) -> Iterator[Problem]:
        """Settings that are allowed but probably mistakes."""
        return iter(())

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema of the fields, with their docstrings, and with their older names next to them."""
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        properties = schema.get("properties", {})
        describe(cls, properties)
        for name, field in cls.model_fields.items():
            first, *older = names_of(name, field)
            properties |= {each: {OLDER_NAME_OF: [cls.__name__, first], "deprecated": True} for each in older}
        return reference


class CamelContractModel(ContractModel):
    """camelCase keys, which earlier were snake_case; both are accepted."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(
            validation_alias=lambda name: AliasChoices(*dict.fromkeys((to_camel(name), name)))
        )
    )


def unread(part: ContractModel) -> Iterator[Problem]:
    """Fields that were set, and that nothing reads."""
    for name, instead in part.IGNORED.items():
        if name in part.model_fields_set:
            yield (name,), f"is ignored: {instead}"


def names_of(name: str, field: FieldInfo) -> tuple[str, ...]:
    """All keys of a field; the first is the current one."""
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
