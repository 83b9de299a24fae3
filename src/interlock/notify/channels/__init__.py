"""Ways to reach people, one file each, found by the `kind` in the configuration."""
