"""The cluster as STATE has it, for lists and streams: readers cause no requests to the API server."""
