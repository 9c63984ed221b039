"""The messages on NATS: subjects, envelopes, and the data of every event and command. `proto/` is generated from it."""
