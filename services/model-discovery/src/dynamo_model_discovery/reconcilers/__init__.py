"""The reconcilers, one file a kind."""
