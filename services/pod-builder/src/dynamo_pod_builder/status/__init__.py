"""Status of graphs and components, computed from what is observed. Pure: objects in, objects out, the time is an argument."""
