"""Policy templates: whole files with comments, to be printed, read and changed."""

from __future__ import annotations

from importlib.resources import files

from interlock.core.errors import NotFound

TEMPLATE_NAMES = ("balanced", "strict", "read-only", "money")


def read_template(name: str) -> str:
    if name not in TEMPLATE_NAMES:
        raise NotFound(f"There is no template {name!r}. There are {', '.join(TEMPLATE_NAMES)}.")
    return (files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")


def template_summary(name: str) -> str:
    """The first line of the file, which says what it allows."""
    return read_template(name).partition("\n")[0].removeprefix("# ")
