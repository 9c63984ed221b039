"""The owner of an adapter's name: if several models of one base in a namespace request a name, the first by rank gets it.

A change of one model affects at most one other: the first of the models with this name. So even with thousands of models
with one name, each change needs only one more reconcile.
"""

from collections.abc import Iterable

from dynamo_shared.api import objects
from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.objects import KubeObject

from dynamo_model_discovery.lora.adapter import is_lora, record_of
from dynamo_model_discovery.models.workers import index_value

NAME_INDEX = "adapter-name"
#: A character that cannot be in namespaces and hashes.
_BEFORE_NAME = "\0"


def claims(model: KubeObject) -> tuple[str, ...]:
    """Index values of the names that a model requests, or may have loaded."""
    spec, record = model.get("spec") or {}, record_of(model)
    requested = (spec.get("modelName"),) if is_lora(spec) else ()
    names = dict.fromkeys((*requested, *(record.names if record is not None else ())))
    return tuple(value for name in names if isinstance(name, str) and (value := claim(model, name)))


def claim(model: KubeObject, name: str) -> str:
    """The index value of a name on the workers of a model's base; empty without a base."""
    base = (model.get("spec") or {}).get("baseModelName")
    return f"{index_value(model['metadata']['namespace'], base_model_hash(base))}{_BEFORE_NAME}{name}" if base else ""


def name_of(claimed: str) -> str:
    """The name of an index value."""
    return claimed.partition(_BEFORE_NAME)[2]


def requests_name(model: KubeObject, name: str) -> bool:
    """Whether a model requests a name."""
    spec = model.get("spec") or {}
    return is_lora(spec) and spec.get("modelName") == name and not objects.is_deleting(model)


def rank(model: KubeObject, name: str) -> tuple[bool, str, str]:
    """Sort key of models that request a name: first the model that has loaded it, then by age, then by object name."""
    metadata, record = model["metadata"], record_of(model)
    return record is None or record.name != name, metadata.get("creationTimestamp", ""), metadata["name"]


def first(models: Iterable[KubeObject], name: str) -> KubeObject | None:
    """The first by rank of the models that request a name."""
    return min((each for each in models if requests_name(each, name)), key=lambda each: rank(each, name), default=None)
