"""The profiler: DynamoGraphDeploymentRequests become deployments that keep their objectives."""
