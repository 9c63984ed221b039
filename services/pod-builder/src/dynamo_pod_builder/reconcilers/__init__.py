"""One reconciler per resource: takes a key, reads the cache, writes the difference, and reports the observed state."""
