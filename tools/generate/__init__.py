"""Generates files from the code: CRDs, schemas, the AsyncAPI and OpenAPI documents, parts of the charts,
docs/reference.
"""
