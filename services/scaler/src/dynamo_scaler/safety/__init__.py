"""How far, how fast and when a component may be scaled. Pure, except for the stored recent requests."""
