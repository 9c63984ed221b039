"""The routes of the API, one file a topic, in the order of the document."""
