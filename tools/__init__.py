"""Tools that build and verify the project; no wheel includes them."""
