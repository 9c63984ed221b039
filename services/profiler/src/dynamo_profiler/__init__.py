"""The profiler: turns DynamoGraphDeploymentRequests into deployments that keep their objectives."""
