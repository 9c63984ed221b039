"""Status of graphs and components, computed from the observed state. Pure: objects in, objects out; the time is an
argument.
"""
