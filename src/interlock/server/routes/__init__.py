"""HTTP routes for people and programs, one module for each resource."""
