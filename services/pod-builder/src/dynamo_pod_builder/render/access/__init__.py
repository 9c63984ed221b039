"""What pods may do and pull: service accounts, roles and pull secrets."""
