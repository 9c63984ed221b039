"""The demonstration: a local cluster, the platform on it, and graphs on their way to successful."""
