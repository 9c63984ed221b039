"""Worker discovery: Dynamo's own records, from wherever it keeps them, as one set of workers and models on the bus."""
