"""The table of attacks; each module covers one class of targets."""
