"""The types of Kubernetes that manifests embed, as an API server publishes them, for checks without a server."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.resources import Resource


@cache
def checker(*kinds: Resource) -> Checker:
    """A checker of these kinds, without any of all, which takes some half a second of processor time to build.

    The types are those in `kubernetes_types.json`, which an integration test compares with a real API server.
    """
    document = json.loads(files("dynamo_ctl").joinpath("kubernetes_types.json").read_text())
    return Checker.from_documents(document, resources=kinds)


def errors(manifest: Mapping[str, Any]) -> list[FieldError]:
    """Every wrong place inside the embedded types of a manifest of a kind of this platform."""
    return checker(resources.of(dict(manifest))).errors(manifest)
