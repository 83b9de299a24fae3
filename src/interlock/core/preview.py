"""Previews: what a call would do, as people see it before they decide, and the version of what it shows.

An approved call runs later. If an item has changed by then, nobody saw what the call would do to it: it must not take
effect. So the version is stored with the approval, and compared inside the transaction that changes the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from interlock.core.canonical import canonical, digest, read_canonical
from interlock.core.errors import CallWouldFail, InvalidRequest, ToolFailed
from interlock.core.ports import ToolItem

MAX_VERSION = 32 * 1024  # characters: a hundred items with long ids
PROPOSE_AGAIN = "Nothing was done. Read it again and propose the change again."
NOTHING_LEFT = "Nothing was done: there is nothing left to change."

FindDigest = Callable[[str, str], str | None]  # of the body of an item, by kind and id; None if there is no such item


@dataclass(frozen=True, slots=True)
class Preview:
    """A preview with the version of what it shows, which the tool gets back when it runs; empty if there is none.

    Raises CallWouldFail for a version that cannot be stored: without it the call would not be compared.
    """

    text: str
    version: str = ""

    def __post_init__(self) -> None:
        if not all(isinstance(each, str) for each in (self.text, self.version)):  # a pack from outside
            raise CallWouldFail("The preview of this tool is wrong: its text and its version have to be texts.")
        _check_version(self.version)

    def __str__(self) -> str:
        return self.text


def to_preview(made: object) -> Preview:
    """What the preview of a tool returned, as a Preview."""
    match made:
        case Preview():
            return made
        case tuple():  # else the version would be shown, and not compared
            raise CallWouldFail(
                "The preview of this tool returned a tuple. It has to return a text, or Preview(text, version)."
            )
        case _:
            return Preview(str(made))


def _check_size(size: int) -> None:
    if size > MAX_VERSION:
        raise CallWouldFail(
            f"The preview version of this call has {size:,} characters or more; at most {MAX_VERSION:,} are stored. "
            "Propose the change for fewer items at a time."
        )


def _check_version(version: str) -> None:
    _check_size(len(version))
    try:
        canonical(version)
    except InvalidRequest as error:  # NUL and lone surrogates
        raise CallWouldFail("The version that the preview of this tool gives cannot be stored.") from error


def items_version(items: Mapping[str, Iterable[ToolItem]]) -> str:
    """The version of stored items, by kind. A kind without items says that there were none of it.

    Raises CallWouldFail if there are too many for one call.
    """
    digests = {kind: {item.id: digest(canonical(item.body)) for item in found} for kind, found in items.items()}
    _check_size(sum(len(kind) + sum(map(len, of_kind)) for kind, of_kind in digests.items()))  # before it is encoded
    version = canonical(digests).decode()
    _check_version(version)
    return version


class ShownItems:
    """The items of a version, as people saw them."""

    def __init__(self, version: str) -> None:
        self._digests = _read_version(version)

    def check_unchanged(self, find_digest: FindDigest) -> None:
        """Raise ToolFailed if one of the items is different by now."""
        for kind, items in self._digests.items():
            for item_id, sha256 in items.items():
                found = find_digest(kind, item_id)
                if found is None:
                    raise _outdated(kind, item_id, "was deleted after this call was shown to people", NOTHING_LEFT)
                if found != sha256:
                    raise _outdated(kind, item_id, "was changed after this call was shown to people")

    def check_shown(self, kind: str, item_id: str, find_digest: FindDigest) -> None:
        """Raise ToolFailed for an item that exists and is of a shown kind, but was not shown itself.

        It was added since, or somebody edited the call to name it.
        """
        items = self._digests.get(kind)
        if items is not None and item_id not in items and find_digest(kind, item_id) is not None:
            raise _outdated(kind, item_id, "was not shown to people with this call")


def _outdated(kind: str, item_id: str, what: str, then: str = PROPOSE_AGAIN) -> ToolFailed:
    return ToolFailed(f"{kind.replace('_', ' ').capitalize()} {item_id!r} {what}. {then}")


def _read_version(version: str) -> Mapping[str, Mapping[str, str]]:
    try:
        items = read_canonical(version.encode())
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, dict) or not all(isinstance(each, dict) for each in items.values()):
        raise ToolFailed(f"The version of the items that people saw cannot be read. {PROPOSE_AGAIN}")
    return cast(Mapping[str, Mapping[str, str]], items)
