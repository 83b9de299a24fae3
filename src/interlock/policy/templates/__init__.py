"""Policies to start from: whole files with comments, to be printed, read and changed."""

from __future__ import annotations

from importlib.resources import files

from interlock.core.errors import NotFound

NAMES = ("balanced", "strict", "read-only", "money")


def template(name: str) -> str:
    if name not in NAMES:
        raise NotFound(f"There is no template {name!r}. There are {', '.join(NAMES)}.")
    return (files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")


def summary(name: str) -> str:
    """The first line of the file says what it lets through."""
    return template(name).partition("\n")[0].removeprefix("# ")
