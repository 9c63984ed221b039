"""How large an installation may grow: figures at N graphs, compared with an empty platform."""
