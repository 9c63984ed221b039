"""The reconcilers, one file for each kind."""
