"""What `interlock doctor` looks at, by subject."""
