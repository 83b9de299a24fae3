"""How two policies differ, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from interlock.cli.output import show
from interlock.core.card import visible
from interlock.policy.diff import Difference, Facet, RuleDifference

KINDS = ("added", "removed", "changed", "renamed", "moved")
MARKS = {"added": "+", "removed": "-", "changed": "~", "renamed": "~", "moved": ">"}
STYLES = {"added": "green", "removed": "red", "changed": "yellow", "renamed": "yellow", "moved": "cyan"}

SIDE_BY_SIDE = 60  # characters
NOT_GIVEN = "not given"


def summed_up(difference: Difference) -> str:
    """`1 rule added, 2 changed; the defaults differ`."""
    kinds = Counter(each.kind for each in difference.rules)
    parts = [f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind]]
    if parts:
        number, _, rest = parts[0].partition(" ")
        parts[0] = f"{number} {'rule' if number == '1' else 'rules'} {rest}"
    others = [name for name, facets in _others(difference) if facets]
    return "; ".join(filter(None, [", ".join(parts), *(f"the {name} differ" for name in others)]))


def show_difference(difference: Difference) -> None:
    for each in difference.rules:
        show(Text(f"  {MARKS[each.kind]} {_place(each)}  {_name(each)}", style=STYLES[each.kind]))
        _show_facets(each.facets, each.kind)
    for name, facets in _others(difference):
        if facets:
            show(Text(f"  ~ {name}", style=STYLES["changed"]))
            _show_facets(facets, "changed")


def _others(difference: Difference) -> Iterator[tuple[str, tuple[Facet, ...]]]:
    yield "defaults", difference.defaults
    yield "switches of agents", difference.agents


def _place(each: RuleDifference) -> str:
    if each.moved:
        return f"{each.old_place} → {each.new_place}"
    return str(each.new_place or each.old_place)


def _name(each: RuleDifference) -> str:
    was = f' (was "{visible(each.old_name)}")' if each.old_name else ""
    return f'"{visible(each.rule)}"{was}{", moved" if each.moved and each.kind != "moved" else ""}'


def _show_facets(facets: tuple[Facet, ...], kind: str) -> None:
    for facet in facets:
        for line in _lines(visible(facet.key), visible(facet.old), visible(facet.new), kind):
            show(Text(f"         {line}"))


def _lines(key: str, old: str, new: str, kind: str) -> Iterator[str]:
    """Long values below each other, where the eye finds what differs."""
    if kind in ("added", "removed"):
        yield f"{key}: {new or old}"
    elif len(old) + len(new) < SIDE_BY_SIDE:
        yield f"{key}: {old or NOT_GIVEN} → {new or NOT_GIVEN}"
    else:
        yield f"{key}:"
        yield f"  - {old or NOT_GIVEN}"
        yield f"  + {new or NOT_GIVEN}"
