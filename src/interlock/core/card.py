"""Cards: a call as people see it, escaped, typed and with findings; two different calls never look alike."""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import Final, Literal
from unicodedata import bidirectional, category, is_normalized, normalize
from unicodedata import name as name_of

from interlock.core.canonical import canonical
from interlock.core.errors import InvalidRequest

Level = Literal["alarm", "note"]
_Argument = tuple[str, str, object]  # pointer (on the stack: the parent's), name, value
_Anomaly = tuple[str, Level, str]  # kind, level, message

LONG_TEXT: Final = 2_000  # characters; above that a person sees head, tail, length and digest
_BLANK_RUN: Final = 200  # consecutive white space that pushes the following text off a screen
_BLANK_LINES: Final = 20
_POINTERS: Final = 1 << 26  # characters of all pointers of a card together
_NAMED: Final = 3  # characters or hosts spelled out in a message; the rest is counted


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for a closer look; alarms block Approve until acknowledged by id, notes only inform."""

    id: str
    kind: str
    level: Level
    pointer: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardField:
    """One argument at any depth; `length` counts a scalar's characters and a container's members."""

    pointer: str  # exact, for programs: the only text here that is not escaped
    name: str
    type: str
    text: str
    length: int
    sha256: str
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card; everything but pointers and ids is safe to print, `agent_…` fields are the agent's unverified words."""

    risk: str
    tool: str
    sentence: str
    facts: tuple[tuple[str, str], ...]
    fields: tuple[CardField, ...]
    findings: tuple[Finding, ...]
    preview: str = ""
    agent_says: str = ""
    agent_description: str = ""
    agent_preview: str = ""


def find_findings(
    args: Mapping[str, object],
    known: frozenset[str] | None = None,
    secrets: frozenset[str] = frozenset(),
    data: bytes = b"",
) -> tuple[Finding, ...]:
    """Find anomalies, in document order, one per kind and pointer.

    `known` are the only names allowed; secrets are not searched. `data` are the canonical bytes of the arguments where
    the caller has them: most show at a glance that there is nothing to find.
    """
    is_plain = _is_plain_json(data) or (_is_plain(args) and _pointers_size(args, 0) < _POINTERS // 2)
    if is_plain and (known is None or args.keys() <= known):
        return ()
    found: dict[str, Finding] = {}
    for pointer, name, value in _walk(args, secrets):
        for kind, level, message in _argument_anomalies(name, value, known if pointer.count("/") == 1 else None):
            new = Finding(f"{kind}:{pointer}", kind, level, pointer, message)
            old = found.setdefault(new.id, new)
            if old is not new:  # one anomaly in both a name and its value is one finding; "alarm" < "note"
                found[new.id] = replace(old, level=min(old.level, level), message=f"{old.message} {message}")
    return tuple(found.values())


def make_card(
    *,
    tool: str,
    sentence: str,
    risk: str,
    facts: Iterable[tuple[str, str]],
    args: Mapping[str, object],
    findings: Sequence[Finding],
    secrets: frozenset[str] = frozenset(),
    **words: str,
) -> Card:
    """Make a card: all texts are given raw and escaped here, once; `args` are the parsed stored bytes, redacted."""
    ids: dict[str, tuple[str, ...]] = {}
    for finding in findings:
        ids[finding.pointer] = (*ids.get(finding.pointer, ()), finding.id)
    shown_facts = tuple((escape_invisible(label), escape_invisible(text)) for label, text in facts)
    fields = tuple(_field(*spot, ids.get(spot[0], ())) for spot in _walk(args, secrets))
    more = {name: escape_invisible(text) for name, text in words.items()}
    return Card(
        risk=risk,
        tool=escape_invisible(tool),
        sentence=escape_invisible(sentence),
        facts=shown_facts,
        fields=fields,
        findings=tuple(findings),
        **more,
    )


def escape_invisible(text: str) -> str:
    r"""Escape reversibly: invisible characters become \u{202e}, a backslash two, so neither imitates the other."""
    if text.isascii() and text.isprintable():
        return text.replace("\\", "\\\\")
    chars = set(text)
    hidden = {ch for ch in chars if not ch.isprintable() or ch == "\\" or _BLANK.match(ch)}
    if _marks_deceive(text):
        hidden |= {ch for ch in chars if not _stands_alone(ch)}
    hidden |= _foreign_marks(text)
    return text.translate({ord(ch): _escape(ch) for ch in hidden}) if hidden else text


def unescape_invisible(shown: str) -> str:
    """The inverse of `escape_invisible`."""
    return _ESCAPES.sub(lambda found: chr(int(found[1], 16)) if found[1] else _SHORT[found[0]], shown)


def head_and_tail(text: str, limit: int = 400) -> tuple[str, str]:
    """The ends of a long visible text, never cut inside an escape; (text, "") when it is short."""
    if len(text) <= limit:
        return text, ""
    start, end = (at - len(_ATOMS.sub("", text[:at], count=1)) for at in (limit // 2, len(text) - limit // 2))
    return text[:start], text[end:]


def risk_level(effect: str, priority: str) -> str:
    """The risk shown on a card; an undeclared effect counts as a write."""
    if effect == "destructive" or priority == "high":
        return "high"
    return "low" if effect == "read" else "medium"


def _is_plain_json(data: bytes) -> bool:
    """Fast path for canonical JSON: in printable ASCII without an escape, all names and texts are plain."""
    if not 0 < len(data) <= LONG_TEXT or not data.isascii() or b"\\" in data:
        return False
    text = data.decode()
    return text.isprintable() and (len(text) <= _BLANK_RUN or _LONG_BLANKS not in text)


def _is_plain(value: object) -> bool:
    """Fast path: printable ASCII of moderate length can hold no finding but a run of spaces."""
    match value:
        case str():
            size = len(value)
            short = size <= _BLANK_RUN or (size <= LONG_TEXT and _LONG_BLANKS not in value)
            return short and value.isascii() and value.isprintable()
        case int() | float() | None:
            return True
        case dict():
            parts = [*value, *value.values()]
            texts = [part for part in parts if type(part) is str]
            if _is_plain("".join(texts)):  # else one of them is not plain, or they are too long together
                parts = [part for part in parts if type(part) is not str] if len(texts) < len(parts) else []
            return all(map(_is_plain, parts))
        case list():
            return all(map(_is_plain, value))
        case _:
            return False


def _pointers_size(value: Mapping[str, object] | list[object], prefix: int) -> int:
    """The approximate number of characters in all pointers; a value accepted here is accepted by `make_card` too."""
    match value:
        case list():
            inner = (_pointers_size(v, prefix + 7) for v in value if isinstance(v, (list, dict)))
        case _:
            inner = (_pointers_size(v, prefix + len(k) + 1) for k, v in value.items() if isinstance(v, (list, dict)))
    return prefix * len(value) + sum(inner)


@dataclass(frozen=True, slots=True)
class _Secret:
    value: object


def _walk(args: Mapping[str, object], secrets: Set[str]) -> Iterator[_Argument]:
    """Every member in document order, containers before their members, nothing inside a secret."""
    stack, room = _members("", args), _POINTERS
    while stack:
        parent, name, value = stack.pop()
        pointer = f"{parent}/{name.replace('~', '~0').replace('/', '~1')}"
        room -= len(pointer)
        if room < 0:  # one long name over many members: 1 MiB of arguments would make gigabytes of pointers
            raise InvalidRequest("The names of the arguments are too long for so many values. Shorten them.")
        value = _Secret(value) if pointer in secrets else value
        yield pointer, name, value
        stack += _members(pointer, value)


def _members(parent: str, value: object) -> list[_Argument]:
    match value:
        case Mapping():
            return [(parent, name, member) for name, member in value.items()][::-1]
        case list() | tuple():
            return [(parent, str(index), member) for index, member in enumerate(value)][::-1]
        case _:
            return []


def _field(pointer: str, key: str, value: object, findings: tuple[str, ...]) -> CardField:
    kind, text, length = _shown_value(value)
    digest = (
        sha256(str(value).encode(errors="surrogatepass")).hexdigest() if kind == "string" and length > LONG_TEXT else ""
    )
    # names have no quotation marks, so spaces at their edges have to be escaped
    name = escape_invisible(key) if key == key.strip(" ") else escape_invisible(key).replace(" ", r"\u{20}")
    return CardField(pointer=pointer, name=name, type=kind, text=text, length=length, sha256=digest, findings=findings)


def _shown_value(value: object) -> tuple[str, str, int]:
    match value:
        case _Secret({"$secret": str(fingerprint), **others}) if not others:
            return "secret", f"hidden, fingerprint {escape_invisible(fingerprint)}", 0
        case _Secret():  # should have been redacted and was not: stays hidden
            return "secret", "hidden", 0
        case str(text):
            return "string", '"' + escape_invisible(text).replace('"', '\\"') + '"', len(text)
        case Mapping() as members:
            return "object", "" if members else "{}", len(members)
        case list() | tuple() as items:
            return "array", "" if items else "[]", len(items)
        case _:
            text = canonical(value).decode()  # as stored: 1.0 and 1 are one number with one spelling
            return {"null": "null", "true": "boolean", "false": "boolean"}.get(text, "number"), text, len(text)


def _marks_deceive(text: str) -> bool:
    """Whether combining marks could make two texts look alike, cover neighbours or land on the quotation mark."""
    return category(text[0])[0] == "M" or not is_normalized("NFC", text) or bool(_PILED_MARKS.search(text))


def _stands_alone(ch: str) -> bool:
    """Whether it is no combining mark, no inner part of a Korean syllable and no duplicate letter (the Kelvin sign)."""
    return is_normalized("NFC", ch) and not ("\u1160" <= ch <= "\u11ff" or category(ch)[0] == "M")


def _foreign_marks(text: str) -> set[str]:
    """Marks of one script that follow a letter of another, where most fonts draw nothing for some of them."""
    scripts = {ch: _script(ch) for ch in set(text) if ch >= "\u0300"}
    marks = {ch for ch, script in scripts.items() if script and category(ch)[0] == "M"}
    if not marks:
        return marks
    found, base = set[str](), 0
    for ch in text:
        if ch not in marks:
            base = base if _joins(ch) else scripts.get(ch, 0)
        elif scripts[ch] != base:
            found.add(ch)
    return found


def _script(ch: str) -> int:
    """The number of the script that has combining marks of its own, else 0."""
    _, end, script = _SCRIPTS[bisect(_SCRIPT_STARTS, ord(ch)) - 1]
    return script if ord(ch) <= end else 0


def _joins(ch: str) -> bool:
    """Whether it is no base of the marks after it: a mark of any script, or a joiner."""
    return ch in "\u200c\u200d" or (ch >= "\u0300" and category(ch)[0] == "M")


def _escape(ch: str) -> str:
    return ch.encode("unicode_escape").decode() if ch in "\\\n\r\t" else f"\\u{{{ord(ch):x}}}"


def _argument_anomalies(name: str, value: object, known: frozenset[str] | None) -> Iterator[_Anomaly]:
    if known is not None and name not in known:
        yield "unknown_argument", "alarm", "The tool declares no argument of this name."
    for kind, level, what in _text_anomalies(name):
        yield kind, "alarm" if kind == "space" else level, f"The name {what}."  # no name needs an unusual space
    if _IMITATION.search(name):
        yield "lookalike", "alarm", f"The name imitates Latin letters: {_code_points(name)}."
    for kind, level, what in _text_anomalies(value):
        yield kind, level, f"The value {what}."


def _text_anomalies(text: object) -> Iterator[_Anomaly]:
    if not isinstance(text, str) or _is_plain(text):
        return
    kinds = _chars_by_kind(text)
    for kind, level, what in _PHRASES:
        if kind in kinds:
            yield kind.removesuffix("?"), level, f"{what}: {_code_points(kinds[kind])}"
    if gap := _blank_run_length(text):
        yield "space", "alarm", f"pushes text out of sight with {gap:,} blank characters in a row"
    if not text.isascii():
        yield from _letter_anomalies([word for word in dict.fromkeys(text.split()) if not word.isascii()])
    if len(text) > LONG_TEXT:
        yield "long", "note", f"is {len(text):,} characters long: look at its end too"


def _chars_by_kind(text: str) -> dict[str, list[str]]:
    """The characters of each kind, in code point order, without harmless invisible ones."""
    kinds: dict[str, list[str]] = {}
    for ch in sorted(set(_HARMLESS_INVISIBLE.sub("", text))):
        kinds.setdefault(_kind(ch), []).append(ch)
    return kinds


def _kind(ch: str) -> str:
    match category(ch):
        case "Cc":
            return "" if ch in "\n\t" else "control"
        case "Cf":
            return "bidi" if _BIDI.match(ch) else "invisible"
        case "Zs" | "Zl" | "Zp":
            return "" if ch == " " else "space?" if ch in _USUAL_SPACES else "space"
        case _ if _EMOJI.match(ch):  # before the unassigned: emoji may be newer than this Python's tables
            return "emoji"
        case group if group in ("Cn", "Co", "Cs") or _BLANK.match(ch):
            return "invisible"
        case _:
            return "right_to_left" if bidirectional(ch) in ("R", "AL") else ""


def _blank_run_length(text: str) -> int:
    """The length of the first run of white space that is too long or holds too many blank lines, else 0."""
    runs = (run[0] for run in _WHITE.finditer(text))
    return next((len(run) for run in runs if len(run) > _BLANK_RUN or run.count("\n") > _BLANK_LINES + 1), 0)


def _letter_anomalies(words: list[str]) -> Iterator[_Anomaly]:
    text = " ".join(words)
    reasons = [f"{what}: {_quote(text, match)}" for what, pattern in _LOOKALIKES if (match := pattern.search(text))]
    imitation = islice(filter(_imitates, words), 1)
    if foreign := _foreign_marks(text):
        reasons.append(f"puts marks of one script on letters of another: {_code_points(sorted(foreign))}")
    reasons += [
        f'imitates Latin letters: {_code_points(word)} in "{escape_invisible(word[:60])}"' for word in imitation
    ]
    # a dotted word may be a file as well, so without other reasons only what is written like a host counts as one
    names = (match[0] for match in (_DOTTED if reasons else _HOST).finditer(text) if not match[0].isascii())
    hosts = [f"{'may name' if reasons else 'names'} the host {_punycode_host(name)}" for name in islice(names, _NAMED)]
    if reasons or hosts:
        yield "lookalike" if reasons else "host", "alarm" if reasons else "note", "; it ".join(reasons + hosts)


def _quote(text: str, match: re.Match[str]) -> str:
    """The anomalous letters with their code points, and the word around them."""
    before, after = text[max(0, match.start() - 24) : match.start()], text[match.end() : match.end() + 24]
    word = _NOT_WORD.split(before)[-1] + match[0] + _NOT_WORD.split(after)[0]
    latin = [ch for ch in word if ch.isascii()]
    # the minority is anomalous: a Latin e in a Russian word, a Russian one in an English word
    return f'{_code_points(latin if 0 < len(latin) * 2 < len(word) else word)} in "{escape_invisible(word[:60])}"'


def _imitates(token: str) -> bool:
    """Whether a host, address or path has a part that only looks Latin; next to Latin one letter is enough."""
    if not _JOINT.search(token):
        return False
    enough = 1 if _ASCII_LETTER.search(token) else 3  # so that Russian initials pass
    # a part with other letters of its own alphabet is not taken for Latin
    parts = (part for part in _SEPARATOR.split(token) if not _FOREIGN.search(_IMITATION.sub("", part)))
    return any(len(word) >= enough for part in parts for word in _IMITATION.findall(part))


def _punycode_host(host: str) -> str:
    """The name that a resolver looks up."""
    labels = normalize("NFKC", host).lower().split(".")
    return escape_invisible(".".join(x if x.isascii() else "xn--" + x.encode("punycode").decode() for x in labels))


def _code_points(text: Iterable[str]) -> str:
    """Distinct characters beyond printable ASCII (or all, if there are none) by code point and name."""
    chars = list(dict.fromkeys(text))
    odd = [ch for ch in chars if not ch.isascii() or not ch.isprintable()] or chars
    more = f" and {len(odd) - _NAMED:,} more" if len(odd) > _NAMED else ""
    return ", ".join(f"U+{ord(ch):04X} {name_of(ch, '')}".rstrip() for ch in odd[:_NAMED]) + more


def _char_class(ranges: str) -> str:
    """The inside of a regular expression's [], from code points, since look-alikes cannot be told apart as letters."""
    return re.sub(r"\s*([0-9a-f]+)", lambda match: f"\\U{match[1]:0>8}", ranges)


_LONG_BLANKS: Final = " " * (_BLANK_RUN + 1)
_WHITE: Final = re.compile(rf"\s(?<!\s\s)\s{{{_BLANK_LINES},}}+")
_ESCAPES: Final = re.compile(r"\\u\{(10[0-9a-f]{4}|[0-9a-f]{1,5})\}|\\[\\nrt]")
_SHORT: Final = {"\\\\": "\\", "\\n": "\n", "\\r": "\r", "\\t": "\t"}
_ATOMS: Final = re.compile(r"(?:[^\\]++|\\u\{[0-9a-f]++\}|\\[^u])*+")
_BIDI: Final = re.compile(f"[{_char_class('61c 200e 200f 202a-202e 2066-2069')}]")
# letters, marks and symbols by category, but invisible
_BLANK: Final = re.compile(
    f"[{_char_class('34f 115f 1160 17b4 17b5 180b-180f 2800 3164 fe00-fe0f ffa0 fffc 16fe4 1d159 e0100-e01ef')}]"
)
# French, and browsers that format a price for it, use the first two; Japanese names have the third
_USUAL_SPACES: Final = frozenset("\u00a0\u202f\u3000")
_PICTURE: Final = _char_class("203c 2049 20e3 2300-23ff 24c2 25a0-27bf 2934 2935 2b00-2bff 3030 303d 1f000-1faff")
_SIGN: Final = _char_class("a9 ae 2122 2139 2194-21aa")  # a picture only before a variation selector
_EMOJI: Final = re.compile(f"[{_PICTURE}]")
# Invisible but harmless: inside an emoji, in scripts that spell with joiners (Arabic to Sinhala, Tibetan, Burmese,
# Khmer), in a Windows line end. Tags never are, though three flags are made of them: they can hide whole texts.
_HARMLESS_INVISIBLE: Final = re.compile(
    rf"[\r\u200c\u200d\ufe0e\ufe0f](?:(?<=[{_PICTURE}{_SIGN}][\ufe0e\ufe0f])|(?<=[0-9#*]\ufe0f)(?=\u20e3)"
    rf"|(?<=[{_PICTURE}\ufe0f]\u200d)(?=[{_PICTURE}{_SIGN}])|(?<=\r)(?=\n)"
    r"|(?<=[\u0620-\u0dff\u0f40-\u109f\u1780-\u17ff][\u200c\u200d])(?![\u200b-\u200f\u2060-\u206f]))"
)
# Blocks of the scripts with combining marks of their own, a script up to each semicolon; as in escapeInvisible.ts.
_MARKED_SCRIPTS: Final = (
    "3e2-3ef 2c80-2cff 102e0-102ff; 400-52f 1c80-1c8f 2de0-2dff a640-a69f 1e030-1e08f; 591-5ff fb1d-fb4f; "
    "600-77f 860-8ff fb50-fdff fe70-fefe 10ec0-10eff 1ee00-1eeff; 780-7bf; 7c0-7ff; 800-83f; 840-85f; 900-97f "
    "a8e0-a8ff 11b00-11b5f; 980-9ff; a00-a7f; a80-aff; b00-b7f; b80-bff 11fc0-11fff; c00-c7f; c80-cff; d00-d7f; "
    "d80-dff 111e1-111ff; e00-e7f; e80-eff; f00-fff; 1000-109f a9e0-a9ff aa60-aa7f 116d0-116ff; 1100-11ff "
    "302e-302f 3130-318f a960-a97f ac00-d7ff; 1200-139f 2d80-2ddf ab00-ab2f 1e7e0-1e7ff; 1700-171f; 1720-173f; "
    "1740-175f; 1760-177f; 1780-17ff 19e0-19ff; 1800-18af 11660-1167f; 1900-194f; 1a00-1a1f; 1a20-1aaf; "
    "1b00-1b7f; 1b80-1bbf 1cc0-1ccf; 1bc0-1bff; 1c00-1c4f; 2c00-2c5f 1e000-1e02f; 2d30-2d7f; 3005-3007 "
    "3021-302d 3038-303b 3100-312f 31a0-31bf 3400-4dbf 4e00-9fff f900-faff 16ff0-16ff1 20000-3ffff; 3031-3035 "
    "3041-30ff 31f0-31ff ff66-ff9f 1aff0-1b16f; a6a0-a6ff 16800-16a3f; a800-a82f; a880-a8df; a900-a92f; "
    "a930-a95f; a980-a9df; aa00-aa5f; aa80-aadf; aae0-aaff abc0-abff; 101d0-101ff; 10350-1037f; 10a00-10a5f; "
    "10ac0-10aff; 10d00-10d3f; 10d40-10d8f; 10e80-10ebf; 10f30-10f6f; 10f70-10faf; 11000-1107f; 11080-110cf; "
    "11100-1114f; 11150-1117f; 11180-111df; 11200-1124f; 112b0-112ff; 11300-1137f; 11380-113ff; 11400-1147f; "
    "11480-114df; 11580-115ff; 11600-1165f; 11680-116cf; 11700-1174f; 11800-1184f; 11900-1195f; 119a0-119ff; "
    "11a00-11a4f; 11a50-11aaf; 11c00-11c6f; 11c70-11cbf; 11d00-11d5f; 11d60-11daf; 11ee0-11eff; 11f00-11f5f; "
    "16100-1613f; 16ad0-16aff; 16b00-16b8f; 16d40-16d7f; 16f00-16f9f; 1bc00-1bc9f; 1cf00-1cfcf; 1d100-1d1ff; "
    "1d200-1d24f; 1d800-1daaf; 1e100-1e14f; 1e290-1e2bf; 1e2c0-1e2ff; 1e4d0-1e4ff; 1e5d0-1e5ff; 1e800-1e8df; "
    "1e900-1e95f"
)
_SCRIPTS: Final = sorted(
    [(0, -1, 0)]
    + [
        (int(first, 16), int(last, 16), number)
        for number, script in enumerate(_MARKED_SCRIPTS.split("; "), 1)
        for first, last in (block.split("-") for block in script.split())
    ]
)
_SCRIPT_STARTS: Final = [first for first, _, _ in _SCRIPTS]
_MARK: Final = _char_class("300-36f 483-489 1ab0-1aff 1dc0-1dff 20d0-20ff fe20-fe2f")
_LATIN: Final = _char_class("41-5a 61-7a c0-d6 d8-f6 f8-2af 1e00-1eff 2c60-2c7f a722-a7ff ab30-ab64")
_CYRILLIC: Final = _char_class("400-481 48a-52f 1c80-1c88 a640-a66e a680-a69d")
# Greek but for the letters that units and formulas borrow (kΩ, Δt, μm): those are anomalous only between Latin ones
_BORROWED: Final = _char_class("b5 394 3a3 3a9 3b2 3bb 3bc 3c0 3c6 3c8")
_GREEK: Final = _char_class("370-393 395-3a2 3a4-3a8 3aa-3b1 3b3-3ba 3bd-3bf 3c1-3c5 3c7 3c9-3ff 1f00-1fff")
# Armenian, Cherokee, Coptic, Lisu, letter-like signs, Roman numerals, old Mediterranean, mathematical, fullwidth
_OTHER: Final = _char_class(
    "531-588 13a0-13fd ab70-abbf 2c80-2cee a4d0-a4fd 2102 210a-2115 2119-211d 2124 2128 212a 212c-2134 2160-2188"
    " 10280-1034a 10400-1044f 1d400-1d7ff ff21-ff3a ff41-ff5a"
)
_WITHIN: Final = rf"[\d{_MARK}{_BORROWED}\u00ad\u200b-\u200d\u2060\ufeff]*+"  # does not end a word
_MIXED: Final = re.compile(
    rf"[{_LATIN}]{_WITHIN}[{_CYRILLIC}{_GREEK}{_OTHER}]|[{_CYRILLIC}]{_WITHIN}[{_LATIN}{_GREEK}{_OTHER}]"
    rf"|[{_GREEK}]{_WITHIN}[{_LATIN}{_CYRILLIC}{_OTHER}]|[{_OTHER}]{_WITHIN}[{_LATIN}{_CYRILLIC}{_GREEK}]"
    rf"|(?<=[{_LATIN}])[{_BORROWED}](?=[{_LATIN}])"
)
_POINT: Final = _char_class("2024 2044 2215 2236 29f8 3002 a789 fe52 fe6b ff0e ff0f ff20 ff61")
_PILED_MARKS: Final = re.compile(rf"[{_MARK}]{{4}}|[{_char_class('334-338 488 489 1abe 20d2-20e2 20e4-20f0')}]")
_LOOKALIKES: Final = (
    ("mixes alphabets in one word", _MIXED),
    ("imitates a dot, slash or the like", re.compile(rf"[\u037e\u1fef]|[{_POINT}](?<=[A-Za-z0-9].)(?=[A-Za-z/])")),
    ("mixes digits of two scripts in one number", re.compile(r"[0-9][.,']?[^\D0-9]|[^\D0-9][.,']?[0-9]")),
    ("is written in mathematical letters", re.compile(r"[\U0001d400-\U0001d7ff]{3}")),
    ("piles up marks or strikes letters through", _PILED_MARKS),
)
# Cyrillic, Greek and fullwidth letters that are easily taken for Latin ones
_LATIN_LOOKALIKES: Final = _char_class(
    "430 435 43e 440 441 443 445 455 456 458 4bb 4cf 501 51b 51d 405 406 408 410 412 415 41a 41c-41e 420-423 425 4c0"
    " 3b1 3b9 3ba 3bd 3bf 3c1 3c5 3c7 391 392 395-397 399 39a 39c 39d 39f 3a1 3a4 3a5 3a7 ff21-ff3a ff41-ff5a"
)
_IMITATION: Final = re.compile(
    rf"(?<![^\W_])(?<![{_MARK}])[0-9]*+[{_LATIN_LOOKALIKES}][{_LATIN_LOOKALIKES}0-9]*+(?![^\W_])(?![{_MARK}])"
)
_JOINT: Final = re.compile(r"[^\W_][./@:_\\=]+[^\W_]")
_SEPARATOR: Final = re.compile(r"[/@:\\=]")
_ASCII_LETTER: Final = re.compile(r"[A-Za-z]")
_FOREIGN: Final = re.compile(rf"[^\W\d_{_LATIN}]")
_NOT_WORD: Final = re.compile(rf"[^\w{_MARK}]")
_LABEL: Final = r"[^\s\x00-,./:-@\[-^`{-\x7f]"
_NAME: Final = rf"{_LABEL}{{1,63}}+(?:\.{_LABEL}{{1,63}}+){{1,8}}+"
_HOST: Final = re.compile(rf"(?:(?<=://)|(?<=@)){_NAME}")
_DOTTED: Final = re.compile(rf"(?<!{_LABEL})(?<!\.){_NAME}")
# findings by character: kind, level, effect; "space?" are the usual spaces
_PHRASES: Final[tuple[_Anomaly, ...]] = (
    ("bidi", "alarm", "turns the direction of the text, so it reads otherwise than it runs"),
    ("invisible", "alarm", "hides characters that cannot be seen"),
    ("control", "alarm", "has control codes, which can rewrite a screen"),
    ("space", "alarm", "has blanks that are not plain spaces"),
    ("space?", "note", "has no-break or wide spaces"),
    ("emoji", "note", "has emoji or other pictures"),
    ("right_to_left", "note", "has letters that run from right to left"),
)
