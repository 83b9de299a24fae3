"""What Interlock costs, beside what the database itself costs for the same statements, in one run."""
