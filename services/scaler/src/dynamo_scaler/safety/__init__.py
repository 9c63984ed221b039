"""How far, how fast and when a component may be scaled. Pure, but for what was asked for lately."""
