"""Checks the pod templates, probes, metrics and jobs in the platform's kinds with the cluster's published schemas."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.kinds import SERVED
from dynamo_shared.api.embedded.compile import Types
from dynamo_shared.api.embedded.findings import Check, FindingsLimit, field_errors
from dynamo_shared.api.embedded.places import embedded_types, walker
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.resources import Resource

Schema = Mapping[str, Any]
SchemaOf = Callable[[Resource], Schema]


def types_of_kinds() -> tuple[str, ...]:
    """Names of the types of Kubernetes that the platform's kinds embed, sorted."""
    return tuple(sorted({name for resource in SERVED for name in embedded_types(schema_of(resource))}))


class Checker:
    """Checks the Kubernetes types that an object of this platform embeds.

    Immutable, and safe for any number of tasks. Types that the documents lack are not checked.
    """

    def __init__(self, checks: Mapping[tuple[str, str], Check]) -> None:
        self._checks = checks

    @classmethod
    def from_documents(
        cls, *documents: Mapping[str, Any], resources: Sequence[Resource] = (), schemas: SchemaOf = schema_of
    ) -> Self:
        """A checker for OpenAPI v3 documents; a type is taken from the first document that has it.

        `resources` and `schemas` are the kinds and their schemas, by default those of this platform.
        """
        known: dict[str, Schema] = {}
        for document in documents:
            for name, schema in ((document.get("components") or {}).get("schemas") or {}).items():
                known.setdefault(name, schema)
        types = Types(known)
        checks: dict[tuple[str, str], Check] = {}
        for resource in resources or SERVED:
            if (check := walker(schemas(resource), types)) is not None:
                checks[resource.api_version, resource.kind] = check
        return cls(checks)

    def errors(self, obj: Mapping[str, Any]) -> list[FieldError]:
        """Errors in the embedded types of an object, at most about 100; [] for other kinds.

        `obj` may be any JSON value: errors outside of embedded types are not reported. Never raises.
        """
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            return []
        check = self._checks.get((api_version, kind))
        if check is None:
            return []
        try:
            return field_errors(check(obj, FindingsLimit()) or ())
        except RecursionError:
            # Only a recursive type can be nested this deeply.
            return [FieldError("", "nested too deeply to be checked")]
