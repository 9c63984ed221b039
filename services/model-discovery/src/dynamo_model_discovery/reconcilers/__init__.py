"""One file a kind that is looked at."""
