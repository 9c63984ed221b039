"""Dynadmin: a REST API over the platform's resources. It is stateless and acts with the rights of its caller."""
