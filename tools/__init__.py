"""What builds and proves the project, and is in no wheel."""
