"""Public names between the platform, its users and Dynamo's runtime: labels, annotations, ports, variables.

Each name stands once, with what it is for, who sets it and who reads it. Code imports the constants
(`labels.SELECTOR`); pages of docs/reference are printed from the same entries.
"""

from dynamo_shared.api.registry import annotations, env, labels, ports
from dynamo_shared.api.registry.catalog import Catalog

__all__ = ["CATALOGS", "OPERATOR", "PLATFORM", "Catalog", "annotations", "env", "labels", "ports"]

CATALOGS: tuple[Catalog, ...] = (labels.CATALOG, annotations.CATALOG, ports.CATALOG, env.CATALOG)

OPERATOR = "dynamo-operator"
"""Value of both managed-by labels: the reference's, so that either control plane knows the other's objects."""
PLATFORM = "dynamo-platform"
"""Value of the usual part-of label, also of the charts."""
