"""Where Dynamo keeps its records. A source reads, parses, and says what it has; what it means is for others to say."""
