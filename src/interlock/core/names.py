"""Names as people read them: folded, so that a name that only looks like another one can be told from it."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from unicodedata import category, normalize


def _twins(table: str) -> dict[int, str]:
    """`a:430,3b1` says that the characters U+0430 and U+03B1 are read as an `a`."""
    pairs = (entry.split(":") for entry in table.split())
    return {int(point, 16): letter for letter, points in pairs for point in points.split(",")}


# Letters of other alphabets that look Latin: Cyrillic, Greek, Armenian, Cherokee, phonetic ones. Capitals come first,
# because some look like another letter than their small form does: a Greek capital nu is an N, a small one a v.
_CAPITALS = _twins(
    "a:410,391,531,13aa b:412,392,13f4 c:421,3f9,13df e:415,395,13ac h:41d,397,13bb i:406,399 j:408,13ab "
    "k:41a,39a,13e6 l:53c,13de m:41c,39c,13b7 n:39d o:41e,39f,555 p:420,3a1,13e2 q:51a r:13a1 s:405,13da "
    "t:422,3a4,13a2 u:54d v:13d9 w:51c,13d4 x:425,3a7 y:423,4ae,3a5 z:396,13c3"
)
_SMALL = _twins(
    "a:430,3b1,251 c:441,3f2 d:501 e:435 g:581,261 h:4bb,570 i:456,3b9,131,269 j:458,3f3 k:43a,3ba l:4cf,1c0 "
    "n:578 o:43e,3bf,585 p:440,3c1 q:51b,566 r:491,280 s:455 t:3c4 u:3c5,57d v:3bd w:51d,3c9 x:445,3c7 "
    "y:443,4af,3b3,28f"
)
_DASHES = dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2015, 0x2212, 0xFE58, 0xFE63, 0xFF0D), "-")
# What has no width of its own although its category does not say so: joiners, fillers, variation selectors.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\u180b-\u180f\U000e0100-\U000e01ef]")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@lru_cache(maxsize=10_000)
def fold(name: str) -> str:
    """The same for all names that a reader would take for this one: compatible forms, case, ends, unseen characters,
    and letters of other alphabets that look Latin. Not `l` and `1`, nor `rn` and `m`.
    """
    if name.isascii() and name.isprintable():
        return name.strip().lower()
    seen = _without_unseen(normalize("NFKC", name)).translate(_CAPITALS)
    small = normalize("NFKC", seen.casefold()).translate(_SMALL).translate(_DASHES)
    return _without_unseen(small).strip()


def has_unseen(name: str) -> bool:
    return not name.isascii() and _without_unseen(name) != name


def differs_only_in_case(name: str, other: str) -> bool:
    return normalize("NFC", name).casefold() == normalize("NFC", other).casefold()


def imitates(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern only to the eye: by look-alikes, unseen characters or spaces, not by case alone."""
    if name.isascii() and pattern.isascii() and name == name.strip():
        return False
    if not fits(fold(name), fold_pattern(pattern)):
        return False
    return not fits(normalize("NFC", name).casefold(), normalize("NFC", pattern).casefold())


def fits(name: str, pattern: str) -> bool:
    return pattern == name or _compiled(pattern).match(name) is not None


@lru_cache(maxsize=10_000)
def fold_pattern(pattern: str) -> str:
    """Folded around its wildcards, which stay as they are."""
    return "".join(part if part in ("*", "?") else fold(part) for part in re.split(r"([*?])", pattern))


@lru_cache(maxsize=10_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _without_unseen(text: str) -> str:
    kept = "".join(ch for ch in text if category(ch) not in _UNSEEN)
    return _BLANK.sub("", kept)
