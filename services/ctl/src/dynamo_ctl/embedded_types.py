"""The types of Kubernetes that manifests embed, as an API server publishes them, for checks without a server."""

import json
from functools import cache
from importlib.resources import files

from dynamo_shared.api.embedded import Checker


@cache
def checker() -> Checker:
    """A checker of the types in `kubernetes_types.json`, which an integration test compares with a real API server."""
    return Checker.from_documents(json.loads(files("dynamo_ctl").joinpath("kubernetes_types.json").read_text()))
