"""What those who run a server want to know of a database: the batches it wrote, and how quickly people decide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from interlock.stores.rows import Row

Fetch = Callable[..., Awaitable[list[Row]]]
BITS = 11  # batches of up to 1,024 items have a size of their own, to the power of two


class Tally:
    """Of a writer's batches: `sizes[n]` of them had less than 2**n items. Whoever has the turn to write counts."""

    __slots__ = ("failed", "items", "sizes")

    def __init__(self) -> None:
        self.sizes = [0] * (BITS + 1)
        self.items = 0
        self.failed = 0

    def add(self, items: int) -> None:
        self.sizes[min(items.bit_length(), BITS)] += 1  # those of none at all are not told
        self.items += items


class Happened(NamedTuple):
    """A line of the ledger; `waited` is how long people took, in milliseconds, where they decided something."""

    seq: int
    kind: str
    waited: int | None


class Measures:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def oldest_pending(self, workspace: str) -> int | None:
        """When it was proposed; of the ten thousand that expire first, so that a long queue costs no more."""
        found: int | None = (await self._fetch("oldest_pending", workspace))[0][0]
        return found

    async def happened(self, workspace: str, after: int, most: int) -> Sequence[Happened]:
        return [Happened(*row) for row in await self._fetch("happened", workspace, after, most)]
