"""GPU memory that engines share, and engines that fail over."""
