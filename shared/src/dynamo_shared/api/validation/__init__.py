"""Rules that a schema cannot express: between fields, between an object and its previous state, and about the cluster.

Pure: an object and facts in, errors and warnings out. Each rule is written once for both versions; docs/validation.md
lists all rules.
"""

from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts

__all__ = ["Facts", "validate"]
