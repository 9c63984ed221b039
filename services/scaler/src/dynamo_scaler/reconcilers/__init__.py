"""The reconcilers, one file each."""
