"""What the API answers, by topic."""
