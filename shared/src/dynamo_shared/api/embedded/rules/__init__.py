"""Rules that the API server enforces without publishing them, by the types of its OpenAPI documents."""
