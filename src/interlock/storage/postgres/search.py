"""PostgreSQL's way to keep and to find documents."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.search import SearchTerms
from interlock.storage.engine.queries import Sql
from interlock.storage.postgres.bulk import array_literal
from interlock.storage.tables.search import MARK, DocumentRange, IndexBatch, SearchDatabase

SCAN_LIMITS = (1_000, 32_768)


class TsvectorIndex:
    """PostgreSQL. Its index gives no order, so what many documents have is found quicker by looking at the newest."""

    def walk(self, wanted: SearchTerms) -> tuple[int, int]:
        return SCAN_LIMITS

    def has(self, wanted: SearchTerms) -> Sql:
        return "d.found @@ ?::tsquery", [self._expression(wanted)]

    def newest(self, wanted: SearchTerms, span: DocumentRange, limit: int) -> Sql:
        """`offset 0` keeps the planner from walking through a million documents for the sake of the order."""
        text = (
            "select d.doc, d.id from ("  # noqa: S608  a whole number
            "select doc, id from docs where workspace = ? and found @@ ?::tsquery offset 0"
            f") d where d.doc > ? and d.doc < ? order by d.doc desc limit {limit:d}"
        )
        return text, [span.workspace, self._expression(wanted), span.above, span.below]

    def some(self, wanted: SearchTerms, workspace: str, limit: int) -> Sql:
        text = f"select id from docs where workspace = ? and found @@ ?::tsquery limit {limit:d}"  # noqa: S608  a number
        return text, [workspace, self._expression(wanted)]

    async def keep(self, place: SearchDatabase, lot: IndexBatch) -> bool:
        """Beside the writer: an index of words takes its time, and the head of the ledger must not be locked so long.

        The row of the mark is the lock. Erasing moves it too, so words that were read before are not written after.
        """
        values = [lot.workspace, MARK, lot.new, lot.old, lot.workspace, *_columns(lot.added)]
        return bool(await place.fetch_text(_WRITE_DOCS, [*values, *_columns(lot.changed), lot.workspace]))

    def passages(self, words: Sequence[str], workspace: str, limit: int) -> Sql:
        """Its rank does not know which words are rare, so those come first that have the most of them."""
        queries = [f"'{word}'" for word in words]
        has = " + ".join(["(p.found @@ to_tsquery('english', ?))::int"] * len(queries))
        text = (
            "select p.path, p.start, p.words from passages p "  # noqa: S608  our own words, and a whole number
            "join documents d on d.workspace = p.workspace and d.path = p.path and d.version = p.version "
            "where p.workspace = ? and p.found @@ to_tsquery('english', ?) "
            f"order by {has} desc, ts_rank_cd(p.found, to_tsquery('english', ?)) desc, p.doc limit {limit:d}"
        )
        either = " | ".join(queries)
        return text, [workspace, either, *queries, either]

    async def purge(self, place: SearchDatabase) -> None:
        """The server does it, when it vacuums."""

    def _expression(self, wanted: SearchTerms) -> str:
        """No word holds an apostrophe or a backslash, so nothing that people type is taken for an operator."""
        parts = [f"'{word}'" for word in wanted.words]
        if wanted.either:
            parts.append("(" + " | ".join([f"'{word}'" for word in wanted.either]) + ")")
        if wanted.beginning:
            parts.append(f"'{wanted.beginning}':*")
        return " & ".join(parts)


def _columns(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [array_literal([pair[place] for pair in pairs]) for place in (0, 1)]


_WRITE_DOCS = """
with moved as (
    insert into marks (workspace, name, seq) values (?, ?, ?)
    on conflict (workspace, name) do update set seq = excluded.seq where marks.seq = ?
    returning 1
), added as (
    insert into docs (workspace, id, words)
    select ?, v.id, v.words
    from moved cross join unnest(?::text[], ?::text[]) with ordinality as v(id, words, n) order by v.n
    on conflict do nothing
), changed as (
    update docs d set words = v.words
    from moved cross join unnest(?::text[], ?::text[]) as v(id, words) where d.workspace = ? and d.id = v.id
)
select 1 from moved
"""
