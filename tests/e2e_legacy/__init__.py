"""`make e2e-legacy`: the kinds before graphs on a real node, from an archive to pods that run its image."""
