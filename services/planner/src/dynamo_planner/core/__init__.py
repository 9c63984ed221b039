"""The pure core of planning: time, metrics and worker counts go in; decisions and their reasons come out. No I/O, no clock."""
