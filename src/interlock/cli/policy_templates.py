"""`interlock policy templates` and `template`: policies to start from."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from interlock.cli.output import print_json, show, table
from interlock.cli.shared import Options, command, given
from interlock.policy.templates import NAMES, summary, template

app = typer.Typer()


@command(app, given)
async def templates(options: Options) -> None:
    """Policies to start from, with what each lets through."""
    if options.json:
        print_json({"items": [{"name": name, "summary": summary(name)} for name in NAMES], "next": None})
    else:
        show(table(("NAME", "WHAT IT DOES"), [(name, summary(name)) for name in NAMES], stretch="WHAT IT DOES"))


@command(app, given, "template")
async def print_template(
    options: Options,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help=f"One of {', '.join(NAMES)}.")],
) -> None:
    """Print a template as it is, with its comments: interlock policy template balanced > policy.yaml"""
    if options.json:
        print_json({"name": name, "summary": summary(name), "body": template(name)})
    else:
        sys.stdout.write(template(name))
