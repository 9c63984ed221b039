"""Objects of our kinds from one version to another, without loss: `convert` is all that most others need."""

from dynamo_shared.api.conversion.convert import KINDS, NotConvertible, convert
from dynamo_shared.api.conversion.kept import kept_fields
from dynamo_shared.api.conversion.parts import marked, unreported
from dynamo_shared.api.conversion.released import without_released

__all__ = ["KINDS", "NotConvertible", "convert", "kept_fields", "marked", "unreported", "without_released"]
