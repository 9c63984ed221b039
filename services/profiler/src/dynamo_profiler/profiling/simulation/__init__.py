"""AI Configurator, which runs in processes of its own: what is asked of them, what they do, and the pool of them."""
