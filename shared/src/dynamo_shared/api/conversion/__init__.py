"""Lossless conversion of objects between the versions of their kinds; most callers need only `convert`."""

from dynamo_shared.api.conversion.convert import KINDS, NotConvertible, convert
from dynamo_shared.api.conversion.parts import marked, unreported
from dynamo_shared.api.conversion.preserved import preserved_fields
from dynamo_shared.api.conversion.released import without_released

__all__ = ["KINDS", "NotConvertible", "convert", "marked", "preserved_fields", "unreported", "without_released"]
