"""Worker discovery: publishes Dynamo's own records, from all its stores, as one set of workers and models."""
