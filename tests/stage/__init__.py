"""The platform as in production: each service is a separate process, on real servers, observed from outside."""
