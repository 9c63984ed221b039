"""The reasons of the watcher's Kubernetes Events."""

from dynamo_shared.runtime.facts import EventReason

TOO_LARGE = EventReason("ObjectTooLarge", "An object does not fit into a NATS message.", "Warning", "Publish")
