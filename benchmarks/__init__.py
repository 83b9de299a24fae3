"""The cost of Interlock, next to that of the database itself for the same statements, in one run."""
