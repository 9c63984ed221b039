"""Our objects against those that the reference operator made of the same manifests (`make conformance CASES=DIR`)."""
