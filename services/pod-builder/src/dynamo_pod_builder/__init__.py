"""The pod-builder: turns DynamoGraphDeployments into Kubernetes objects and reports their status."""
