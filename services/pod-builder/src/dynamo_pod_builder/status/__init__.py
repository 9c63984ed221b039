"""Status of graphs and components, computed from the observed state. Pure: objects and a time in, objects out."""
