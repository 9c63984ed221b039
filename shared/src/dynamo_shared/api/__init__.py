"""The API: resource types, their CRDs, defaults and validation, and the registries of names. Pure: no I/O."""
