"""The Helm charts: what they render, what they refuse, and that an API server takes it."""
