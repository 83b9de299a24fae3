"""A letter as HTML that every mail program shows: tables and plain styles, nothing that runs or is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from interlock.channels.parts.letter import Letter

FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
CELL = "padding:4px 12px 4px 0;vertical-align:top;text-align:left"
VALUE = f"{CELL};font-family:ui-monospace,Menlo,Consolas,monospace;word-break:break-word"
BUTTON = "display:inline-block;padding:12px 20px;background:#1f4e79;color:#ffffff;text-decoration:none"
STYLE = (
    "<style>:root{color-scheme:light dark;supported-color-schemes:light dark}"
    "@media (prefers-color-scheme:dark){.page{background:#1b1b1b!important;color:#eeeeee!important}"
    ".quiet{color:#b0b0b0!important}.warn{background:#4a3500!important;color:#ffe2a0!important}}</style>"
)
_JOINTS = re.compile(r"(?<=\S)([.:@/]+)(?=\S)")


def html_of(given: Letter) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{STYLE}<title>{escape(given.subject)}</title></head>'
        f'<body class="page" style="margin:0;padding:24px;background:#ffffff;color:#1b1b1b;{FONT};'
        f'font-size:15px;line-height:1.5"><div style="max-width:600px">{"".join(_parts(given))}</div></body></html>\n'
    )


def _parts(given: Letter) -> Iterator[str]:
    yield f'<p style="margin:0 0 12px;font-size:17px;font-weight:600;word-break:break-word">{_text(given.lead)}</p>'
    if given.code:
        yield f'<p style="margin:0 0 12px;font-size:26px;letter-spacing:2px;{VALUE}">{_text(given.code)}</p>'
    if given.why:
        yield f'<p style="margin:0 0 12px">{_text(given.why)}</p>'
    if given.warnings:
        listed = "".join(f"<li>{_text(each)}</li>" for each in given.warnings)
        yield (
            '<div class="warn" style="margin:0 0 12px;padding:8px 12px;background:#fff3d6;color:#5c3b00;'
            f'word-break:break-word"><strong>Look twice:</strong><ul style="margin:4px 0 0;padding-left:20px">'
            f"{listed}</ul></div>"
        )
    yield from _tables(given)
    if given.link:
        yield (
            f'<p style="margin:20px 0"><a href="{escape(given.link)}" style="{BUTTON}">{_text(given.action)}</a></p>'
        )
    if given.foot:
        yield f'<p class="quiet" style="margin:20px 0 0;color:#5a5a5a;font-size:13px">{_text(given.foot)}</p>'


def _tables(given: Letter) -> Iterator[str]:
    if given.facts:
        yield _table(given.facts)
    if given.arguments:
        yield '<p style="margin:0 0 4px;font-weight:600">Arguments:</p>'
        yield _table(given.arguments)
    if given.claims:
        yield _table(given.claims)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(
        f'<tr><th scope="row" style="{CELL};font-weight:400" class="quiet">{_text(name)}</th>'
        f'<td style="{VALUE}">{_text(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table role="presentation" style="border-collapse:collapse;margin:0 0 12px">{lines}</table>'


def _text(text: str) -> str:
    """Mail programs make links of what looks like one, unless it is taken apart; what is read stays the same."""
    pieces = _JOINTS.split(text)
    return "".join(f"<span>{each}</span>" if number % 2 else escape(each) for number, each in enumerate(pieces))
