"""One reconciler a resource: each takes a key, reads the cache, makes the difference so, and reports what is."""
