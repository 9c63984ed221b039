"""Estimates how long engines take: monotone curves through measured points, which extrapolate cautiously and learn."""
