"""DynamoModel: workers can load an adapter from its source, and its base model is immutable."""

from typing import Any

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.untrusted.reading import mapping
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import MODEL, UPDATED, RuleSet, Violations, broken

MODELS = RuleSet("Models", (MODEL,))
CHANGES_OF_MODELS = RuleSet("Models", (MODEL,), UPDATED)
UNUSED_IN_MODELS = RuleSet("Models", (MODEL,))
ADVICE_FOR_MODELS = RuleSet("Models", (MODEL,), UPDATED)

_SCHEMES = ("s3://", "hf://", "file://")


@MODELS.rule("must not be empty")
def model_has_names(spec: dict[str, Any], _facts: Facts) -> Violations:
    """A model and its base model have names."""
    for name in ("modelName", "baseModelName"):
        if spec.get(name) == "":
            yield broken(("spec", name))


_NO_SOURCE = (
    "required for modelType lora: where workers load the adapter from, s3://bucket/path, hf://organization/name "
    "or file:///path"
)
_OTHER_SCHEME = "{uri} is not supported; s3://bucket/path, hf://organization/name or file:///path"


@MODELS.rule(_NO_SOURCE, _OTHER_SCHEME)
def adapter_has_a_source(spec: dict[str, Any], _facts: Facts) -> Violations:
    """A LoRA adapter comes from S3, from Hugging Face, or from a path in the workers' pods."""
    source = spec.get("source")
    if spec.get("modelType") != "lora" or not (source is None or isinstance(source, dict)):
        return
    uri = mapping(source).get("uri")
    if source is None or uri == "":
        yield ("spec", "source") if source is None else ("spec", "source", "uri"), _NO_SOURCE
    elif isinstance(uri, str) and not uri.startswith(_SCHEMES):
        yield ("spec", "source", "uri"), _OTHER_SCHEME.format(uri=shown(uri))


@UNUSED_IN_MODELS.rule("has no effect: workers load a model from its source only with modelType lora", added=True)
def only_adapters_are_loaded(spec: dict[str, Any], _facts: Facts) -> Violations:
    """Workers load models of other types when they start."""
    if spec.get("source") is not None and spec.get("modelType") != "lora":
        yield broken(("spec", "source"))


@CHANGES_OF_MODELS.rule("cannot be changed from {before} to {now}: create a DynamoModel of another name")
def type_and_base_stay(spec: dict[str, Any], old: dict[str, Any], _facts: Facts) -> Violations:
    """The type of a model and its base model cannot be changed."""
    for name, default in (("modelType", "base"), ("baseModelName", "")):
        now, before = spec.get(name) or default, old.get(name) or default
        if now != before and isinstance(now, str) and isinstance(before, str):
            yield broken(("spec", name), before=shown(before), now=shown(now))


@ADVICE_FOR_MODELS.rule("it selects the endpoints: keep this DynamoModel until clients use the new one")
def how_to_change_type_or_base(spec: dict[str, Any], old: dict[str, Any], facts: Facts) -> Violations:
    """Appears together with the refusal to change the type or the base model."""
    for at, _ in type_and_base_stay(spec, old, facts):
        yield broken(at)
