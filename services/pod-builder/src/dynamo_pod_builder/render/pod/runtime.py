"""What the pods of a component get by the version of their runtime."""

from __future__ import annotations

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.runtime_version import RuntimeFeatures, features_of, runtime_version

from dynamo_pod_builder.render.pod.template import main_container


def features_of_template(template: KubeObject, override: str | None) -> RuntimeFeatures:
    """Features of the runtime in the main container of a pod template; `override` is the component's own word."""
    image = (main_container(template) or {}).get("image")
    # What is not a text is refused where the pod is written.
    return features_of(runtime_version(image if isinstance(image, str) else "", override))
