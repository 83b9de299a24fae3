"""Routes for people and programs, one file for each resource."""
