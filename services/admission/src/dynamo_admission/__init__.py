"""The admission service: defaulting, validation and conversion webhooks, and the certificates that they serve with."""
