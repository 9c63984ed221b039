"""AI Configurator in separate processes: their jobs, their code, and their pool."""
