"""What is looked at: one file a concern."""
