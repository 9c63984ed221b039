"""Objects of our kinds from one version to another, without loss: `convert` is all that others need."""

from __future__ import annotations

from dynamo_shared.api.conversion.convert import KINDS, NotConvertible, convert

__all__ = ["KINDS", "NotConvertible", "convert"]
