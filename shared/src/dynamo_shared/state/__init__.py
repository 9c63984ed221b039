"""STATE: the Kubernetes objects in NATS. The watcher publishes them (`publisher`), services keep a cache of them."""

from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.state.reader import StateReader

__all__ = ["ObjectCache", "StateReader"]
