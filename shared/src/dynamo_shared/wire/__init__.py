"""What is said over NATS: subjects, envelopes, and the data of every event and command. `proto/` is made of it."""
