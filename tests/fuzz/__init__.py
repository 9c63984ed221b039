"""Sends requests that schemathesis generates from the OpenAPI document to the whole REST API."""
