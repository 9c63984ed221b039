"""Where Dynamo keeps its records. A source reads, parses, and says what it has; what it means is for others to say."""

from dynamo_model_discovery.workers.sources.base import RecordSource

__all__ = ["RecordSource"]
