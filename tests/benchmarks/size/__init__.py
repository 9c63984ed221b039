"""How large an installation may grow: figures at N graphs, next to those of an empty platform."""
