"""Agents of other frameworks, one file each. They hold an Agent and translate; nobody imports them."""
