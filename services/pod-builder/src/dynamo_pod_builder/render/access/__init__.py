"""The access of pods: service accounts, roles and pull secrets."""
