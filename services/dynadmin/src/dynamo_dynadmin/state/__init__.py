"""The cluster as STATE has it, for lists and streams: the API server is not asked, however many people read."""
