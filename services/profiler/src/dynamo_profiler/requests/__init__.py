"""Takes DynamoGraphDeploymentRequests step by step from a model and an objective to a deployed graph."""
