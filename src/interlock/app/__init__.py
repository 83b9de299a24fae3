"""Application services: the agents' gate, the people's inbox, the worker for timers, and their bootstrap."""
