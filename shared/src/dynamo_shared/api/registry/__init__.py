"""Public names that the platform shares with its users and Dynamo's runtime: labels, annotations, ports, variables.

Each name is registered once, with its purpose, who sets it and who reads it. Code imports the constants
(`labels.SELECTOR`); the pages of docs/reference are generated from the same entries.
"""

from dynamo_shared.api.registry import annotations, env, labels, ports
from dynamo_shared.api.registry.catalog import Catalog

__all__ = ["CATALOGS", "OPERATOR", "PLATFORM", "Catalog", "annotations", "env", "labels", "ports"]

CATALOGS: tuple[Catalog, ...] = (labels.CATALOG, annotations.CATALOG, ports.CATALOG, env.CATALOG)

OPERATOR = "dynamo-operator"
"""Value of both managed-by labels: the same as the reference's, so that each control plane recognizes the other's objects."""
PLATFORM = "dynamo-platform"
"""Value of the usual part-of label; the charts use the same value."""
