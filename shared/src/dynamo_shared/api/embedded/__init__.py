"""Checks the Kubernetes types that the platform's kinds embed, with the OpenAPI documents of the cluster. No I/O."""

from dynamo_shared.api.embedded.checker import Checker, types_of_kinds
from dynamo_shared.api.embedded.documents import BadDocument, trimmed

__all__ = ["BadDocument", "Checker", "trimmed", "types_of_kinds"]
