"""How long engines take: measured points become curves that are monotone, honest between and beyond the points, and learn."""
