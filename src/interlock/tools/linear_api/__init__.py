"""Linear over GraphQL, for the pack of tools in `linear.py`: what is asked, how, and what people's names mean there."""
