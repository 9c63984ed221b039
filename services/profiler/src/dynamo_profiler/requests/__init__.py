"""DynamoGraphDeploymentRequests: from a model and an objective to a deployed graph, step by step."""
