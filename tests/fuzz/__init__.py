"""The whole REST API against requests that schemathesis makes up from its OpenAPI document."""
