"""`make image`: the Dockerfile built without Docker, reproducibly, with a bill of materials next to it."""
