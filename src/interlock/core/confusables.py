"""Names folded as people read them (homoglyphs, case, invisible characters), to detect names that only look alike."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from unicodedata import category, normalize
from unicodedata import name as name_of


def _parse_lookalikes(table: str) -> dict[int, str]:
    """Parse a table: `a:430,3b1` says that the characters U+0430 and U+03B1 are read as an `a`."""
    pairs = (entry.split(":") for entry in table.split())
    return {int(point, 16): letter for letter, points in pairs for point in points.split(",")}


# Letters of other alphabets that look Latin: Cyrillic, Greek, Armenian, Cherokee, Lisu, Coptic, Deseret, phonetic ones,
# and a few rings and strokes. Capitals come first, because some look like another letter than their small form does: a
# Greek capital nu is an N, a small one a v. No such table is ever complete: `mixed_scripts` finds what it lacks.
_CAPITALS = _parse_lookalikes(
    "a:410,391,531,13aa,a4ee b:412,392,13cf,13f4,a4d0 c:421,3f9,13df,a4da d:13a0,13e7,a4d3 e:415,395,13ac,a4f0 "
    "f:a4dd g:13b6,13c0,13f3,a4d6 h:41d,397,13bb,13c2,a4e7 i:406,399,13a5,a4f2 j:408,13ab,a4d9 k:41a,39a,13e6,a4d7 "
    "l:53c,13de,a4e1 m:41c,39c,13b7,a4df n:39d,a4e0 o:41e,39f,555,13be,13eb,a4f3 p:420,3a1,13e2,a4d1 q:51a "
    "r:13a1,13d2,a4e3 s:405,13d5,13da,a4e2 t:422,3a4,13a2,a4d4 u:54d,a4f4 v:13d9,a4e6 "
    "w:51c,13b3,13d4,a4ea x:425,3a7,a4eb y:423,4ae,3a5,13a9,13bd,a4ec "
    "z:396,13c3,a4dc"
)
_SMALL = _parse_lookalikes(
    "a:430,3b1,251,1d00 b:299 c:441,3f2,1d04 d:501,1d05 e:435,1d07 f:a730 g:581,261,262 h:4bb,570,29c "
    "i:456,3b9,131,269,26a j:458,3f3,1d0a k:43a,3ba,1d0b l:4cf,1c0,29f m:1d0d n:578,274 o:43e,3bf,585,1d0f,1d11,275 "
    "p:440,3c1,1d18,1bf q:51b,566 r:491,280,433,27e s:455,a731 t:3c4,1d1b u:3c5,57d,1d1c v:3bd,1d20 w:51d,3c9,1d21 "
    "x:445,3c7 y:443,4af,3b3,28f z:1d22 "
    "a:2c81 b:432,2c83 c:2ca5,1043d e:2c89,ab32 h:43d,2c8f i:2c93 k:2c95 m:43c,2c99 n:2c9b o:2c9f,1042c,ab3d p:2ca3 "
    "q:a7af r:2c85,ab47 s:10448 t:442,2ca7 w:2cb1 x:2cad y:2ca9 z:2c8d "
    "l:4e28,10443 o:7cb,d20,3007"
) | {point: letter for point, letter in _CAPITALS.items() if 0x13A0 <= point < 0x1400}  # Cherokee folds to its capitals
_LINES = dict.fromkeys((0x2CD, 0x2017, 0x203F), "_")  # before all else: the compatible form of U+2017 loses its line
_DASHES = dict.fromkeys((0x2010, 0x2012, 0x2013, 0x2014, 0x2015, 0x2212), "-")  # others have these as compatible forms
# Characters without a width of their own, although their category does not say so: marks that belong to no letter,
# fillers, variation selectors.
_BLANK = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f"
    "\u180b-\u180f\U000e0100-\U000e01ef]"
)
_WORD_ENDS = re.compile(r"[^A-Za-z0-9\x80-\U0010ffff]+")
_SCRIPTS_BESIDE_ANY = frozenset({"CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "COMBINING", "MODIFIER", "VARIATION"})
SHOWN, SHOWN_WORD = 3, 60  # characters and the length of a word in a message
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@lru_cache(maxsize=10_000)
def fold_confusables(name: str) -> str:
    """Fold confusable names to the same string.

    Folds compatible forms, case, surrounding spaces, invisible characters, and letters of other alphabets that look
    Latin. Not `l` and `1`, nor `rn` and `m`.
    """
    if name.isascii() and name.isprintable():
        return name.strip().lower()
    seen = _without_unseen(normalize("NFKC", name.translate(_LINES))).translate(_CAPITALS)
    small = normalize("NFKC", seen.casefold()).translate(_SMALL).translate(_DASHES)
    return _without_unseen(small).strip()


@lru_cache(maxsize=10_000)
def mixed_scripts(name: str) -> str:
    """The characters that mix alphabets within one word of a name, as text; empty if none do.

    A look-alike that no table lists is found by the letters next to it, to whose alphabet it does not belong. Chinese,
    Japanese and Korean may be next to any. Words end at ASCII signs only: invisible characters must not split a word
    that people read as one.
    """
    if name.isascii():
        return ""
    for word in _WORD_ENDS.split(normalize("NFKC", name)):
        if len(set(map(_script, word)) - {""}) > 1:
            odd = [ch for ch in dict.fromkeys(word) if not ch.isascii() and _script(ch)][:SHOWN]
            return f'"{escape_non_ascii(word[:SHOWN_WORD])}" has {", ".join(map(_char_name, odd))}'
    return ""


def differs_only_in_case(name: str, other: str) -> bool:
    return without_case(name) == without_case(other)


def without_case(name: str) -> str:
    """The same for names that differ in case only."""
    return normalize("NFC", name).casefold()


def looks_like(name: str, other: str) -> bool:
    """Whether a reader would confuse the two names; names that differ in case only are the same name."""
    return name != other and fold_confusables(name) == fold_confusables(other) and not differs_only_in_case(name, other)


def escape_non_ascii(name: str) -> str:
    """The name with every character but plain ASCII as its code point, so that look-alikes differ."""
    return "".join(ch if " " <= ch <= "~" else f"\\u{{{ord(ch):x}}}" for ch in name)


def is_confusable_with(name: str, pattern: str) -> bool:
    """Whether a name matches a pattern only visually: by look-alikes, invisible characters or spaces, not by case."""
    if name.isascii() and pattern.isascii() and name == name.strip():
        return False
    if not matches_pattern(fold_confusables(name), fold_pattern(pattern)):
        return False
    return not matches_pattern(without_case(name), without_case(pattern))


def matches_pattern(name: str, pattern: str) -> bool:
    """Whether a name matches a pattern, the one way to do so: `*` is any characters, `?` is one, all else literal."""
    return pattern == name or _compile_pattern(pattern).match(name) is not None


@lru_cache(maxsize=10_000)
def fold_pattern(pattern: str) -> str:
    """Fold a pattern around its wildcards, which stay as they are."""
    return "".join(map(fold_confusables, re.split(r"([*?])", pattern)))


@lru_cache(maxsize=10_000)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.replace("[", "[[]")))


@lru_cache(maxsize=10_000)
def _script(ch: str) -> str:
    """The alphabet of a letter, mark or digit, by the first word of its name; empty for what belongs to all of them."""
    if ch.isascii():
        return "LATIN" if ch.isalpha() else ""
    if category(ch)[0] not in "LMN":
        return "UNKNOWN" if category(ch) in ("Cn", "Co") else ""
    first = re.split("[ -]", name_of(ch, "UNKNOWN").removeprefix("EXTENDED "))[0]
    if first == "HANGUL":
        return "" if "\uac00" <= ch <= "\ud7a3" else first  # the parts of its syllables look like rings and strokes
    return "" if first in _SCRIPTS_BESIDE_ANY else first


def _char_name(ch: str) -> str:
    return f"U+{ord(ch):04X} {name_of(ch, '')}".rstrip()


def _without_unseen(text: str) -> str:
    kept = "".join(ch for ch in text if category(ch) not in _UNSEEN)
    return _BLANK.sub("", kept)
