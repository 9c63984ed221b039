"""From a model, its hardware and an objective to deployments that meet it, with their figures."""
