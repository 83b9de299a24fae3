"""The services around the rules: what agents, people and time do, and how they are put together."""
