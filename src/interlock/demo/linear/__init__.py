"""A stand-in for Linear, for the demo: Linear's own schema, a few of its rules, and data in Interlock's own database.

`schema.graphql.gz` is a part of Linear's schema (packages/sdk/src/schema.graphql of github.com/linear/linear, at
8335e09a); its licence is beside it. Each rule that the schema does not hold says in the code how it is known:
*documented* by Linear, *seen* in answers that others published, or *assumed*.
"""
