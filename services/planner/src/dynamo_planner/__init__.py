"""Makes deployments of objectives, and keeps objectives by planning replicas."""
