"""The routes of the API, one file per topic, in the order of the document."""
