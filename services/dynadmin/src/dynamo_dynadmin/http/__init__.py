"""HTTP: routes, problems, streams, limits. Other packages decide the content of answers."""
