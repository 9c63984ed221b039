"""`make image`: builds the Dockerfile without Docker, reproducibly, with a bill of materials."""
