"""What many tests are built of, each once."""
