"""Writes docs/benchmarks.md and its picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import plot, report

INTRODUCTION = (
    "This page and its picture are written by `make bench`; do not edit them. "
    "[Performance](performance.md) explains the figures.",
    "One **cycle** is: propose, the waiting call is durable, decided, the tool has run, its result is durable. All get "
    "the same call, a model that answers at once, one process, and a database that waits for the disk. LangGraph, DBOS "
    "and Restate bring their own storage. OpenAI Agents and Pydantic AI leave it to the application, so the benchmark "
    "keeps their state in the leanest table that does it. Interlock does more in a cycle than they do: rules, a "
    "ledger, a claim before the start.",
    "![Durable approval cycles per second](benchmarks.svg)",
)


def write_page(figures: Mapping[str, Any], folder: Path) -> None:
    (folder / "benchmarks.md").write_text(page_text(figures))
    (folder / "benchmarks.svg").write_text(plot.draw(figures))


def page_text(figures: Mapping[str, Any]) -> str:
    tables = [table.markdown() for table in report.tables(figures)]
    known = [f"| {name} | {value} |" for name, value in report.version_table(figures).items()]
    machine = "\n".join(["## Machine and versions", "", "| what | which |", "|---|---|", *known]) + "\n"
    took = f"The run took {figures['seconds'] / 60:.0f} minutes.\n"
    return "\n".join([*(f"{each}\n" for each in ("# Benchmarks", *INTRODUCTION)), *tables, machine, took])
