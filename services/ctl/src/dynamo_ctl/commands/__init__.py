"""One package or module for each command: `__init__.py` has the options and the help. The modules next to it do the
work, and are imported when the command is called.
"""
