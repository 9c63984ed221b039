"""The watcher: publishes the Kubernetes objects that the platform reads to NATS."""
