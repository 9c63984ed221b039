"""Scale commands: read, decided, carried out, answered."""
