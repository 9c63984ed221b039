"""One room a command: `__init__.py` has its options and help, the modules next to it what it does, imported when it is called."""
