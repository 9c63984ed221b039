"""One room a command: its options and help. What it does is elsewhere, imported when it is called."""
