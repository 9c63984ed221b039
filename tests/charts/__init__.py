"""The Helm charts: what they render, which values they reject, and that an API server accepts the objects."""
