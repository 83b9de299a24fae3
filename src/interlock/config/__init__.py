"""Configuration: interlock.yaml and the environment, as frozen settings."""
