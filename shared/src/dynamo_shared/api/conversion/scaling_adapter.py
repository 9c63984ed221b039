"""Converts a DynamoGraphDeploymentScalingAdapter: only the name of one field differs."""

from typing import Any

from dynamo_shared.api.conversion.lens import Lens, of_parts

_STATUS = ("replicas", "selector", "lastScaleTime", "conditions")


def to_beta(body: dict[str, Any]) -> dict[str, Any]:
    """The v1beta1 form of a v1alpha1 adapter."""
    return _adapter(body, "serviceName", "componentName")


def to_alpha(body: dict[str, Any]) -> dict[str, Any]:
    """The v1alpha1 form of a v1beta1 adapter."""
    return _adapter(body, "componentName", "serviceName")


def _adapter(body: dict[str, Any], source: str, target: str) -> dict[str, Any]:
    names = (("name", "name"), (source, target))

    def convert(spec: dict[str, Any]) -> dict[str, Any]:
        result = {"replicas": spec["replicas"]} if "replicas" in spec else {}
        reference = spec.get("dgdRef")
        if isinstance(reference, dict):
            result["dgdRef"] = {new: reference[old] for old, new in names if old in reference}
        return result

    return of_parts(body, convert, _status)


def _status(status: dict[str, Any]) -> dict[str, Any]:
    # In v1beta1, `replicas` is required.
    return {"replicas": 0, **{name: status[name] for name in _STATUS if name in status}}


TO_BETA = Lens(to_beta, to_alpha)
TO_ALPHA = Lens(to_alpha, to_beta)
