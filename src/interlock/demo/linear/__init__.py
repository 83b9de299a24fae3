"""A fake Linear for the demo: Linear's own schema, a few of its rules, and data in Interlock's own database.

`schema.graphql.gz` is a part of Linear's schema (packages/sdk/src/schema.graphql of github.com/linear/linear, at
8335e09a); its licence is beside it. Each rule that is not in the schema is marked in the code with its source:
*documented* by Linear, *seen* in responses that others published, or *assumed*.
"""
