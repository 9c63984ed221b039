"""The Kubernetes types that our kinds embed, checked against the OpenAPI documents of the cluster. No I/O here."""

from dynamo_shared.api.embedded.checker import Checker, types_of_kinds
from dynamo_shared.api.embedded.documents import BadDocument, trimmed

__all__ = ["BadDocument", "Checker", "trimmed", "types_of_kinds"]
