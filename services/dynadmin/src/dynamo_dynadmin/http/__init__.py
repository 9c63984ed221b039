"""HTTP: routes, problems, streams, limits. What is answered is decided elsewhere."""
