"""A tenant with `edit` in one namespace against the platform (`make hostile`)."""
