"""Tool packs, one file each: what the agent can do."""
