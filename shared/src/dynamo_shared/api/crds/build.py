"""CustomResourceDefinitions, made of the types and of what kubectl shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from dynamo_shared.api import resources, v1beta1
from dynamo_shared.api.crds.structural import Schema, structural_schema
from dynamo_shared.api.resources import Resource

CATEGORY = "dynamo"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; `priority` above 0 shows it with `-o wide` only."""

    name: str
    json_path: str
    description: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> dict[str, Any]:
        """The column as a CRD has it."""
        manifest: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.json_path}
        if self.priority:
            manifest["priority"] = self.priority
        return {**manifest, "description": self.description}


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind: where it lives, its type, and how kubectl shows it."""

    resource: Resource
    model: type[BaseModel]
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    #: Paths of wanted and of present replicas, for `kubectl scale`; a graph has several components and so none.
    scale: tuple[str, str] | None = None


def _condition(column: str, condition: str, description: str) -> Column:
    return Column(column, f'.status.conditions[?(@.type=="{condition}")].status', description)


_BACKEND = Column("Backend", ".spec.backendFramework", "Inference engine of the workers")
_AGE = Column("Age", ".metadata.creationTimestamp", "Time since creation", type="date")

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        resources.DYNAMO_GRAPH_DEPLOYMENTS,
        v1beta1.DynamoGraphDeployment,
        ("dgd",),
        (
            _condition("Ready", "Ready", "Whether all components are ready"),
            Column("State", ".status.state", "initializing, pending, successful or failed"),
            _BACKEND,
            _AGE,
        ),
    ),
    Definition(
        resources.DYNAMO_COMPONENT_DEPLOYMENTS,
        v1beta1.DynamoComponentDeployment,
        ("dcd",),
        (_condition("Available", "Available", "Whether the component serves"), _BACKEND, _AGE),
        # Beyond the reference: a component that stands alone is scaled like a Deployment.
        scale=(".spec.replicas", ".status.component.replicas"),
    ),
)


@cache
def schema_of(resource: Resource) -> Schema:
    """Structural schema of a kind. It is shared: read it, never change it."""
    definition = next(each for each in DEFINITIONS if each.resource == resource)
    schema = structural_schema(definition.model)
    # The API server checks these three itself, and wants to see no more of them.
    schema["properties"] |= {
        "apiVersion": {"type": "string", "description": f"{resource.api_version}."},
        "kind": {"type": "string", "description": f"{resource.kind}."},
        "metadata": {"type": "object"},
    }
    schema["required"] = [name for name in schema.get("required", []) if name != "metadata"]
    if not schema["required"]:
        del schema["required"]
    return schema


def build(definition: Definition) -> dict[str, Any]:
    """CustomResourceDefinition of a kind."""
    resource = definition.resource
    return {
        "apiVersion": resources.CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": resources.CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": list(definition.short_names),
                "categories": [CATEGORY],
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": _subresources(definition),
                    "additionalPrinterColumns": [column.manifest() for column in definition.columns],
                    "schema": {"openAPIV3Schema": schema_of(resource)},
                }
            ],
        },
    }


def _subresources(definition: Definition) -> dict[str, Any]:
    if definition.scale is None:
        return {"status": {}}
    wanted, present = definition.scale
    return {"status": {}, "scale": {"specReplicasPath": wanted, "statusReplicasPath": present}}


def file_name(definition: Definition) -> str:
    """Name of the packaged file, as controller-gen would name it."""
    return f"{definition.resource.group}_{definition.resource.plural}.yaml"
