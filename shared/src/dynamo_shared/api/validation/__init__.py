"""Rules that a schema cannot hold: between fields, between an object and its former self, and about the cluster.

Pure: an object and facts in, findings out. Rules are written once for both versions; docs/validation.md lists them.
"""

from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts

__all__ = ["Facts", "validate"]
