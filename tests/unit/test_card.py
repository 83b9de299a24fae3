# ruff: noqa: RUF001 - letters that look alike are what this file is about
"""The approval card: hidden and look-alike characters are visible, ordinary text of any language passes."""
# R53

import dataclasses
import json
import re
import unicodedata
from collections.abc import Mapping
from copy import deepcopy
from hashlib import sha256
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import canonical
from interlock.core.card import (
    LONG_TEXT,
    Card,
    CardField,
    Finding,
    escape_invisible,
    find_findings,
    head_and_tail,
    make_card,
    risk_level,
    unescape_invisible,
)
from interlock.core.errors import InvalidRequest

INVISIBLE = set("\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\ufeff\uffa0") | {
    chr(code)
    for start, end in ((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0xFE00, 0xFE0F), (0xE0000, 0xE01EF))
    for code in range(start, end + 1)
}

any_text = st.text(st.characters(exclude_categories=()), max_size=40) | st.text(
    "\\u{}0123456789abcdefn\n\t\r\"'~/ \u202e\u0301éeK", max_size=12
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 10**40, 10**40 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=10,
)
json_objects = st.dictionaries(any_text, json_values, max_size=4)


def build_card(args: Mapping[str, object], secrets: frozenset[str] = frozenset()) -> Card:
    findings = find_findings(args, secrets=secrets)
    return make_card(tool="t", sentence="s", risk="low", facts=(), args=args, findings=findings, secrets=secrets)


def shown_fields(args: Mapping[str, object]) -> tuple[tuple[str, str, str], ...]:
    return tuple((field.pointer, field.type, field.text) for field in build_card(args).fields)


def finding_kinds(value: object, level: str = "alarm") -> set[str]:
    return {finding.kind for finding in find_findings({"a": value}) if finding.level == level}


def finding_message(value: str) -> str:
    (finding,) = (finding for finding in find_findings({"a": value}) if finding.level == "alarm")
    return finding.message


def strict_kinds(value: object) -> object:
    """Equal exactly when the canonical bytes are: Python says True == 1 and we do not; 1.0 and 1 are one number."""
    match value:
        case dict():
            return ("object", tuple((key, strict_kinds(member)) for key, member in value.items()))
        case list():
            return ("array", tuple(map(strict_kinds, value)))
        case bool() | None | str():
            return (type(value).__name__, value)
        case _:
            return ("number", canonical(value))


def rebuild_args(fields: tuple[tuple[str, str, str], ...]) -> object:
    """The inverse of a card's fields: that there is one is what makes the card injective."""
    places: dict[str, object] = {"": {}}
    for pointer, kind, text in fields:
        parent, _, token = pointer.rpartition("/")
        value: object = {"object": {}, "array": []}.get(kind)
        if kind == "string":
            value = unescape_invisible(text[1:-1].replace('\\"', '"'))
        elif kind in ("number", "boolean"):
            value = json.loads(text)
        places[pointer] = value
        match places[parent]:
            case dict() as members:
                members[token.replace("~1", "/").replace("~0", "~")] = value
            case list() as items:
                items.append(value)
            case other:
                raise AssertionError(f"{parent} has members and is {other!r}")
    return places[""]


# --- visible ---


@given(any_text)
def test_visible_text_can_be_turned_back(text: str) -> None:
    assert unescape_invisible(escape_invisible(text)) == text


@given(any_text, any_text)
def test_different_texts_never_look_alike_even_after_normalisation(one: str, other: str) -> None:
    if one != other:
        assert unicodedata.normalize("NFC", escape_invisible(one)) != unicodedata.normalize(
            "NFC", escape_invisible(other)
        )


@given(any_text)
def test_visible_text_has_nothing_that_hides(text: str) -> None:
    for ch in escape_invisible(text):
        assert ch not in INVISIBLE
        assert ch == " " or unicodedata.category(ch)[0] not in "CZ"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a\\b", "a\\\\b"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("gpj\u202eexe", "gpj\\u{202e}exe"),
        ("\x1b[2J", "\\u{1b}[2J"),
        ("a\u00a0b\u2003c", "a\\u{a0}b\\u{2003}c"),
        ("\U000e0069", "\\u{e0069}"),
        ("\ue000\u0378\ud800", "\\u{e000}\\u{378}\\u{d800}"),
        ("Привет, Ελλάδα, 東京, שלום, नमस्ते, 🎉", "Привет, Ελλάδα, 東京, שלום, नमस्ते, 🎉"),
        ("e\u0301 and é", "e\\u{301} and é"),
        ("\u0301a", "\\u{301}a"),
        ("300 \u212a", "300 \\u{212a}"),
        ("\u1112\u1161\u11ab", "\u1112\\u{1161}\\u{11ab}"),
        ("p\u0336a\u0336y", "p\\u{336}a\\u{336}y"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, expected: str) -> None:
    assert escape_invisible(text) == expected


def test_a_backslash_and_an_escape_never_look_alike() -> None:
    assert escape_invisible("\\u{202e}") != escape_invisible("\u202e")
    assert escape_invisible("\\n") != escape_invisible("\n")


# --- fields ---


@given(json_objects)
def test_the_arguments_can_be_rebuilt_from_what_is_shown(args: dict[str, object]) -> None:
    assert strict_kinds(rebuild_args(shown_fields(args))) == strict_kinds(args)


@given(json_objects, st.data())
def test_one_changed_value_shows(args: dict[str, object], data: st.DataObject) -> None:
    changed = {key: data.draw(st.just(value) | json_values) for key, value in args.items()}
    assert (shown_fields(args) == shown_fields(changed)) <= (strict_kinds(args) == strict_kinds(changed))


@given(json_objects)
def test_nothing_on_a_card_hides(args: dict[str, object]) -> None:
    card = build_card(args)
    texts = [field.name + field.text for field in card.fields] + [finding.message for finding in card.findings]
    for ch in "".join(texts):
        assert ch not in INVISIBLE
        assert ch == " " or unicodedata.category(ch)[0] not in "CZ"


@given(json_objects)
def test_a_card_is_made_the_same_way_twice_and_points_to_its_findings(args: dict[str, object]) -> None:
    card = build_card(args)
    assert card == build_card(deepcopy(args))
    ids = [finding.id for finding in card.findings]
    assert len(ids) == len(set(ids))
    assert [id for field in card.fields for id in field.findings] == ids


def test_values_that_read_the_same_differ_by_type_and_quotation() -> None:
    values = [1, "1", True, "true", None, "null", {}, "{}", [], "[]", {"a": 1}, [1], '"1"', 1.5, ""]
    assert len({shown_fields({"x": value}) for value in values}) == len(values)


def test_fields_come_flat_in_document_order_with_exact_pointers() -> None:
    args = {"b": {"x/y": [1, {}], "m~n": None}, "a": "hi"}
    assert shown_fields(args) == (
        ("/b", "object", ""),
        ("/b/x~1y", "array", ""),
        ("/b/x~1y/0", "number", "1"),
        ("/b/x~1y/1", "object", "{}"),
        ("/b/m~0n", "null", "null"),
        ("/a", "string", '"hi"'),
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (10**40 - 1, "9" * 40),
        (0.1, "0.1"),
        (1e21, "1e+21"),
        (1e300, "1e+300"),
        (1e-5, "0.00001"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ('say "hi" \\', '"say \\"hi\\" \\\\"'),
        ((), "[]"),
        (MappingProxyType({}), "{}"),
    ],
)
def test_a_value_is_shown_exactly(value: object, text: str) -> None:
    assert build_card({"x": value}).fields[0].text == text


def test_a_name_with_spaces_at_its_edge_is_not_taken_for_the_plain_one() -> None:
    names = [field.name for field in build_card({"to": 1, " to": 2, "to ": 3, "to\u200b": 4, "a b": 5}).fields]
    assert names == ["to", r"\u{20}to", r"to\u{20}", r"to\u{200b}", "a b"]


def test_a_long_value_is_whole_and_carries_length_and_digest() -> None:
    text = "ä" * (LONG_TEXT + 1)
    assert build_card({"x": text}).fields == (
        CardField(
            pointer="/x",
            name="x",
            type="string",
            text=f'"{text}"',
            length=LONG_TEXT + 1,
            sha256=sha256(text.encode()).hexdigest(),
            findings=("long:/x",),
        ),
    )
    assert build_card({"x": "ä" * LONG_TEXT}).fields[0].sha256 == ""


def test_length_counts_characters_of_scalars_and_members_of_containers() -> None:
    lengths = [field.length for field in build_card({"s": "a\nb", "n": 125, "o": {"k": []}}).fields]
    assert lengths == [3, 3, 1, 0]


def test_what_is_not_json_makes_no_card() -> None:
    with pytest.raises(InvalidRequest, match="set"):
        build_card({"x": {1, 2}})


@pytest.mark.parametrize("name", ["k" * 2_000, "~" * 2_000, "\u202e" * 2_000])
def test_long_names_over_many_values_are_refused_before_they_fill_the_memory(name: str) -> None:
    args: dict[str, object] = {name: [{name: [0] * 15} for _ in range(400)]}
    assert len(build_card(args).fields) == 1 + 400 * 17
    args = {name: [{name: [0] * 500} for _ in range(400)]}
    with pytest.raises(InvalidRequest, match="too long"):
        find_findings(args)
    with pytest.raises(InvalidRequest, match="too long"):
        make_card(tool="t", sentence="s", risk="low", facts=(), args=args, findings=())


def test_the_pointers_of_a_card_have_67_108_864_characters_together() -> None:
    name = "k" * 6_100_803  # eleven times: in "/k…", and in "/k…/0" to "/k…/9"
    card = make_card(tool="t", sentence="s", risk="low", facts=(), args={name: [0] * 10}, findings=())
    assert sum(len(field.pointer) for field in card.fields) == 67_108_864
    with pytest.raises(InvalidRequest, match="too long"):
        make_card(tool="t", sentence="s", risk="low", facts=(), args={name: [0] * 10, "": 0}, findings=())


def test_names_that_are_too_long_together_for_a_card_are_too_long_to_be_searched() -> None:
    args: object = [0] * 4_000
    for _ in range(10):
        args = {"k" * 2_000: args}
    assert isinstance(args, dict)
    with pytest.raises(InvalidRequest, match="too long"):
        find_findings(args)


def test_every_text_of_a_card_is_made_visible() -> None:
    card = make_card(
        tool="pay\u200b",
        sentence="Pay\n1",
        risk="high",
        facts=[("agent", "a\x1b"), ("thread\u202e", "t")],
        args={},
        findings=(),
        preview="<b>\u2066",
        agent_says="trust \\ me\r",
    )
    assert card == Card(
        risk="high",
        tool="pay\\u{200b}",
        sentence="Pay\\n1",
        facts=(("agent", "a\\u{1b}"), ("thread\\u{202e}", "t")),
        fields=(),
        findings=(),
        preview="<b>\\u{2066}",
        agent_says="trust \\\\ me\\r",
    )


def test_a_card_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        build_card({}).risk = "low"  # type: ignore[misc]


# --- secrets ---


def test_a_secret_shows_that_it_is_hidden_and_its_fingerprint() -> None:
    (field,) = build_card({"key": {"$secret": "ab12cd34"}}, frozenset({"/key"})).fields
    assert (field.type, field.text, field.length) == ("secret", "hidden, fingerprint ab12cd34", 0)


def test_an_argument_shaped_like_a_secret_is_an_ordinary_object() -> None:
    assert shown_fields({"key": {"$secret": "ab12"}}) == (("/key", "object", ""), ("/key/$secret", "string", '"ab12"'))


@pytest.mark.parametrize(
    "value", ["hunter2\u200b", {"$secret": "ab", "x": "hunter2\u200b"}, ["hunter2\u200b"], {"$secret": 1}, 7]
)
def test_a_secret_that_was_not_redacted_stays_hidden(value: object) -> None:
    card = build_card({"key": value}, frozenset({"/key"}))
    assert [(field.pointer, field.type, field.text) for field in card.fields] == [("/key", "secret", "hidden")]
    assert card.findings == ()


def test_the_name_of_a_secret_is_looked_at() -> None:
    (finding,) = find_findings({"k\u200b": "x\u202e"}, secrets=frozenset({"/k\u200b"}))
    assert finding.kind == "invisible"


# --- findings ---


def findings_by_bytes(args: Mapping[str, object]) -> tuple[Finding, ...]:
    return find_findings(args, data=canonical(args))


@given(json_objects)
def test_the_bytes_of_the_arguments_change_no_finding(args: dict[str, object]) -> None:
    try:
        canonical(args)
    except InvalidRequest:
        return
    assert findings_by_bytes(args) == find_findings(args)


@pytest.mark.parametrize(
    "text", ["a\x7fb", "a\tb", "a\\b", f"a{' ' * 201}b", "x" * (LONG_TEXT + 1), "pаypal", "a\u200bb"]
)
def test_odd_texts_are_found_by_bytes_too(text: str) -> None:
    for args in ({"a": text}, {text: 1}, {"a": [{"b": text}]}):
        assert findings_by_bytes(args) == find_findings(args)
    assert find_findings({"a": "x", "b": 1}, frozenset({"a"}), data=b'{"a":"x","b":1}') != ()


DECEPTIVE = {
    "bidi": [
        "42\u202egpj.exe\u202c",
        "a\u2066b\u2069",
        "a\u200eb",
        "שלום\u200f",
        "\u061c",
    ],
    "invisible": [
        "now\u200b\u200b",
        "hi\U000e0069\U000e0067",
        "soft\u00adhyphen",
        "\ufeffhead",
        "a\u2060b",
        "a\u2064b",
        "pass\u200dword",
        "pass\u200cword",
        "x\ufe0f",
        "👍\ufe0f\ufe0f",
        "a\U000e0101",
        "\u3164",
        "\u115f\u1160\uffa0",
        "a\u180eb",
        "\u2800\u2800",
        "a\U0001d159\U00016fe4",
        "می\u200c\u200bخواهم",
        "\ue000",
        "\U0010ffff",
        "\u0378",
        "\ud800",
        "x@\ud800а.com",
        "🏴\U000e0067\U000e007f",
    ],
    "control": ["\x1b[2Jrm", "a\x00b", "bell\x07", "safe\rrm -rf", "\x7f", "\x85", "\x9b31m"],
    "space": [
        "a\u2003b",
        "a\u2028b",
        "a\u2029b",
        "\u1680",
        "a\u205fb",
        "x" + " " * 201 + "y",
        "x" + "\n" * 23 + "y",
        "x" + " \n" * 30 + "y",
        "x" * 3000 + " " * 201,
    ],
    "lookalike": [
        "https://api.pаrtner.example/v2",
        "pаypal",
        "аpple and рear",
        "привeт",
        "gοοgle",
        "micrοsoft.com",
        "accoμnt",
        "acco\u00b5nt",
        "ρaypal",
        "раураӏ.com",
        "х.com",
        "ceo@аррӏе.com",
        "/srv/рау/x",
        "раура_l",
        "аррӏе.сео",
        "pаypal1",
        "a1а",
        "a\u0301а",
        "a\u200bа",
        "Ꭺpple",
        "ⲟpen",
        "ոpen",
        "ｐaypal",
        "ｇｏｏｇｌｅ.com",
        "𝐩aypal",
        "𝐀𝐏𝐏𝐑𝐎𝐕𝐄𝐃",
        "paypaⅼ",
        "\u212aeep",
        "сοс",
        "bank.com⁄login.evil.example",
        "bank∕x",
        "evil。com",
        "rm x\u037e rm y",
        "৪00",
        "1,০00",
        "a" + "\u0301\u0302\u0303\u0304",
        "a\u0336p\u0336",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in DECEPTIVE.items() for text in texts])
def test_deceptive_text_raises_its_alarm_as_value_name_and_deep_inside(kind: str, text: str) -> None:
    assert kind in finding_kinds(text)
    assert kind in finding_kinds(f"before {text} after")
    assert kind in finding_kinds([{"x": [text]}])
    assert kind in finding_kinds({text: 1})


@pytest.mark.parametrize(
    "text",
    [
        "Zoë Müller, Łódź, Đặng Thị Hồng, İpek Şahin, Ægir Þórsson, Nguyễn",
        "Анна Каренина, улица Хо Ши Мина, т.е. и т.д., р/с 40702810, А.С.Пушкин",
        "IT-специалист, USB-кабель, 3D-принтер, С уважением, ООО «Ромашка»",
        "Счет_ООО_Ромашка.pdf",
        "Ευρυδίκη Παπαδοπούλου και Σία",
        "Ժաննա Հակոբյան, ᏣᎳᎩ, ⲘⲉⲧⲢⲉⲙ",
        "محمد بن سلمان، می\u200cخواهم، ۱۲۳۴",
        "דוד בן־גוריון",
        "श्रीमती क्\u200dष, न्\u200d, ක්\u200dෂ",
        "山田\u3000太郎、ＮＨＫ、Tシャツ、iPhone15、α版とβ版のAPI",
        "김철수, สมชาย ใจดี, မြန်မာ, ខ្មែរ, አማርኛ, தமிழ்",
        "👨\u200d👩\u200d👧 👍🏽 ❤️ 🏳️\u200d🌈 🇩🇪 1️⃣ ©️ ▶︎ 🧑\u200d💻",
        "10\u00a0000,00\u00a0€, 1\u202f234,56 €, ¥1,000, £5, ₹500, 20\u00a0%",
        "https://example.com/a/b?q=1&r=%20#x, mailto:joe@example.org, C:\\Users\\x\\u{202e}",
        "https://münchen.de/straße, https://пример.рф/путь, josé@correo.es",
        "kΩ, 5 μm, 3 µs, Δt, 2πr², λx, μTorrent, TNF-α, IL-1β, m², ½, Ⅳ, H₂O, 20 ℃, 5 Å, 1⁄2",
        "if (a < b) {\r\n\treturn `x${y}`;\r\n}\n\n\n# naïve → done ✓",
        "SELECT * FROM t WHERE a = 'b' -- ü\n" + "    indented\n" * 30,
        "“quoted” – dash — … «guillemets» „unten“ 'it’s'",
        "résumé.pdf, Brand™, Æon®, №5, 100 °C, ¡Olé!",
        "a\n" * 100,
        "x" + " " * 199 + "y",
        "e\u0301te\u0301.txt from a Mac",
        "1٫5 کیلو",
    ],
)
def test_ordinary_text_raises_no_alarm(text: str) -> None:
    assert [finding.message for finding in find_findings({"a": text}) if finding.level == "alarm"] == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("emoji", "done 🎉"),
        ("emoji", "❤️"),
        ("emoji", "1️⃣"),
        ("emoji", "\U0001fae9 is newer than the tables"),
        ("right_to_left", "שלום"),
        ("right_to_left", "مرحبا"),
        ("long", "x" * (LONG_TEXT + 1)),
        ("space", "10\u00a0000 €"),
        ("host", "https://münchen.de/"),
    ],
)
def test_what_is_only_worth_knowing_is_a_note(kind: str, text: str) -> None:
    assert finding_kinds(text, "note") == {kind}
    assert finding_kinds(text) == set()


def test_plain_arguments_have_no_findings() -> None:
    args = {"path": "/srv/x", "n": 1, "f": 1.5, "b": True, "z": None, "l": ["a", {"k": "v" * 2000}]}
    assert find_findings(args) == ()
    assert find_findings(args, frozenset(args)) == ()
    assert find_findings(MappingProxyType(args)) == ()


def test_a_finding_has_an_id_a_pointer_and_a_sentence() -> None:
    assert find_findings({"a": {"b/c": ["x\u202ey"]}}) == (
        Finding(
            id="bidi:/a/b~1c/0",
            kind="bidi",
            level="alarm",
            pointer="/a/b~1c/0",
            message="The value turns the direction of the text, so it reads otherwise than it runs: "
            "U+202E RIGHT-TO-LEFT OVERRIDE.",
        ),
    )


def test_findings_come_in_document_order() -> None:
    found = find_findings({"z": "\x1b\u202e", "a": ["ok", "\u200b"], "m": "\u2003"}, frozenset("za"))
    assert [finding.id for finding in found] == [
        "bidi:/z",
        "control:/z",
        "invisible:/a/1",
        "unknown_argument:/m",
        "space:/m",
    ]


def test_only_top_level_names_have_to_be_declared() -> None:
    found = find_findings({"to": {"any": 1}, "bcc": "x"}, frozenset({"to"}))
    assert [(finding.id, finding.level) for finding in found] == [("unknown_argument:/bcc", "alarm")]
    assert find_findings({"bcc": "x"}, None) == ()


def test_an_odd_name_and_its_odd_value_are_one_finding_at_the_louder_level() -> None:
    (finding,) = find_findings({"a\u00a0b": "c\u00a0d"})
    assert (finding.kind, finding.level) == ("space", "alarm")
    assert finding.message.startswith("The name has")
    assert "The value has" in finding.message
    (finding,) = find_findings({"🎉": "🎉"})
    assert finding.level == "note"
    (finding,) = find_findings({"a": "c\u00a0d\u2003e"})
    assert finding.level == "alarm"


def test_an_alarm_is_not_softened_by_a_note_of_the_same_kind_before_it() -> None:
    (finding,) = find_findings({"a": "1\u00a0000" + " " * 201 + "and more"})
    assert (finding.kind, finding.level) == ("space", "alarm")


def test_what_is_neither_dict_nor_list_is_looked_into_as_well() -> None:
    assert finding_kinds(("pay ada\u202e",)) == {"bidi"}
    assert [finding.pointer for finding in find_findings(MappingProxyType({"to": "ada\u202e"}))] == ["/to"]


MESSAGES = {
    "a\u202eb": "turns the direction of the text, so it reads otherwise than it runs: U+202E RIGHT-TO-LEFT OVERRIDE",
    "a\u200bb": "hides characters that cannot be seen: U+200B ZERO WIDTH SPACE",
    "\ue000": "hides characters that cannot be seen: U+E000",
    "\ue000\ue001\ue002": "hides characters that cannot be seen: U+E000, U+E001, U+E002",
    "\ue000\ue001\ue002\ue003": "hides characters that cannot be seen: U+E000, U+E001, U+E002 and 1 more",
    "a\x1bb": "has control codes, which can rewrite a screen: U+001B",
    "a\u2003b": "has blanks that are not plain spaces: U+2003 EM SPACE",
    "1\u00a0000": "has no-break or wide spaces: U+00A0 NO-BREAK SPACE",
    "ok \U0001f600": "has emoji or other pictures: U+1F600 GRINNING FACE",
    "\u05d0": "has letters that run from right to left: U+05D0 HEBREW LETTER ALEF",
    "a" + " " * 201 + "b": "pushes text out of sight with 201 blank characters in a row",
    "a" + "\n" * 22 + "b": "pushes text out of sight with 22 blank characters in a row",
    "é" * 2_001: "is 2,001 characters long: look at its end too",
    "p\u0430ypal": 'mixes alphabets in one word: U+0430 CYRILLIC SMALL LETTER A in "p\u0430ypal"',
    "bank\u3002com": 'imitates a dot, slash or the like: U+3002 IDEOGRAPHIC FULL STOP in "bank\u3002com"',
    "1\u0662": 'mixes digits of two scripts in one number: U+0662 ARABIC-INDIC DIGIT TWO in "1\u0662"',
    "\U0001d41a" * 3: f'is written in mathematical letters: U+1D41A MATHEMATICAL BOLD SMALL A in "{chr(0x1D41A) * 3}"',
    "a\u0336b": "piles up marks or strikes letters through: U+0336 COMBINING LONG STROKE OVERLAY"
    r' in "a\u{336}b"',
    "\u0430\u0440.com": "imitates Latin letters: U+0430 CYRILLIC SMALL LETTER A, U+0440 CYRILLIC SMALL LETTER ER"
    ' in "\u0430\u0440.com"; it may name the host xn--80a6a.com',
    "https://b\u00fccher.example/x": "names the host xn--bcher-kva.example",
    "https://\u00e4.a ftp://\u00f6.b x://\u00fc.c x://\u00df.d": "names the host xn--4ca.a; it names the host xn--nda.b"
    "; it names the host xn--tda.c",
    "a" * 40 + "\u0430" + "b" * 40: "mixes alphabets in one word: U+0430 CYRILLIC SMALL LETTER A"
    f' in "{"a" * 25}\u0430{"b" * 24}"',
}


@pytest.mark.parametrize("text", MESSAGES)
def test_a_finding_says_what_is_odd_and_where(text: str) -> None:
    assert [finding.message for finding in find_findings({"a": text})] == [f"The value {MESSAGES[text]}."]


def test_a_finding_about_a_name_says_so() -> None:
    assert [
        finding.message
        for finding in find_findings({"\u0430": 1, "b\u00a0": 1, "c": 1}, frozenset({"\u0430", "b\u00a0"}))
    ] == [
        "The name imitates Latin letters: U+0430 CYRILLIC SMALL LETTER A.",
        "The name has no-break or wide spaces: U+00A0 NO-BREAK SPACE.",
        "The tool declares no argument of this name.",
    ]


@pytest.mark.parametrize("text", ["é" * 2_000, "a" + " " * 200 + "é", "a" + "\n" * 21 + "é", "a\nb\tc\r\né"])
def test_what_is_just_within_the_limits_is_no_finding(text: str) -> None:
    assert find_findings({"a": text}) == ()


def test_every_type_has_its_name() -> None:
    args = {"a": True, "b": False, "c": None, "d": 1, "e": 1.5, "f": "", "g": [], "h": {}}
    assert [field.type for field in build_card(args).fields] == [
        "boolean",
        "boolean",
        "null",
        "number",
        "number",
        "string",
        "array",
        "object",
    ]


def test_a_secret_has_no_length_that_would_tell() -> None:
    assert build_card({"key": "hunter2"}, frozenset({"/key"})).fields == (
        CardField(pointer="/key", name="key", type="secret", text="hidden", length=0, sha256="", findings=()),
    )


def test_half_a_character_has_a_digest_too() -> None:
    (field,) = build_card({"a": "\ud800" * (LONG_TEXT + 1)}).fields
    assert len(field.sha256) == 64


def test_the_last_part_of_a_korean_syllable_alone_is_a_finding() -> None:
    assert escape_invisible("\u0301\u11ff") == r"\u{301}\u{11ff}"


def test_a_name_wholly_in_look_alike_letters_is_an_alarm_and_a_russian_one_is_not() -> None:
    assert [finding.id for finding in find_findings({"сс": "x"})] == ["lookalike:/сс"]
    assert find_findings({"имя": "x"}) == ()


def test_odd_letters_are_named_in_the_alphabet_that_is_the_exception() -> None:
    assert "U+0430 CYRILLIC SMALL LETTER A" in finding_message("pаypal")
    assert "U+0065 LATIN SMALL LETTER E" in finding_message("привeт")
    assert "U+043F" not in finding_message("привeт")
    assert "U+043F" not in finding_message("прeвe")  # two of five
    assert "U+0065" not in finding_message("прee")  # a half is no exception


@pytest.mark.parametrize("letter", "AZazÀÖØöøʯḀỿⱠⱿꜢꟿꬰꭤ")
def test_a_latin_letter_of_any_block_in_a_word_of_others_is_found(letter: str) -> None:
    for text in (f"{letter}ж", f"ж{letter}", f"{letter}Ж", f"ω{letter}", f"{letter}ժ"):
        assert finding_message(text).startswith("The value mixes alphabets in one word: ")


@pytest.mark.parametrize("letter", "ЀҁҊԯᲀᲈꙀꙮꚀꚝͰΓΕΡΤΨΪαγκνορυχωϿἀῼԱևᎠᏽⲀⳮꓐꓽⅠↈＡＺａｚ")
def test_a_letter_of_another_alphabet_in_a_latin_word_is_found(letter: str) -> None:
    for text in (f"{letter}W", f"W{letter}"):
        assert finding_message(text).startswith("The value mixes alphabets in one word: ")


@pytest.mark.parametrize("sign", "×÷")
def test_a_sign_between_latin_letters_by_number_is_of_no_alphabet(sign: str) -> None:
    assert finding_kinds(f"ж{sign}ж") == set()


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("https://api.pаrtner.example/v2", "api.xn--prtner-3nf.example"),
        ("see аррӏе.com", "xn--80ak6aa92e.com"),
        ("ｇｏｏｇｌｅ.com", "google.com"),
    ],
)
def test_a_deceptive_host_is_shown_in_punycode(text: str, host: str) -> None:
    assert f"it may name the host {host}" in finding_message(text)


def test_a_message_stays_short_for_any_value() -> None:
    deceptive = "".join(text for texts in DECEPTIVE.values() for text in texts)
    found = find_findings({"a": f"@{'é' * 500}.com " + "pа" * 50_000 + deceptive * 10 + "://é.com " * 50})
    assert max(len(finding.message) for finding in found) < 1_500


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_short_printable_ascii_never_has_a_finding(text: str) -> None:
    assert find_findings({text: [text]}) == ()


# --- head and tail, risk ---


@given(any_text.map(lambda text: escape_invisible(text * 20)), st.integers(0, 60))
def test_head_and_tail_never_cut_an_escape(text: str, limit: int) -> None:
    head, tail = head_and_tail(text, limit)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) <= max(limit // 2, len(text) if len(text) <= limit else 0)
    for part in (head, tail):
        assert re.fullmatch(r"(?:[^\\]|\\u\{[0-9a-f]+\}|\\[\\nrt])*", part)


def test_head_and_tail_of_a_short_text_is_the_text() -> None:
    assert head_and_tail("abc") == ("abc", "")
    assert head_and_tail("a" * 300 + "b" * 300) == ("a" * 200, "b" * 200)
    assert head_and_tail("a" * 3_000 + "b" * 3_000) == ("a" * 200, "b" * 200)
    assert head_and_tail("a" * 400) == ("a" * 400, "")


@pytest.mark.parametrize(
    ("effect", "priority", "risk"),
    [
        ("destructive", "low", "high"),
        ("read", "high", "high"),
        ("write", "", "medium"),
        ("", "", "medium"),
        ("new word", "normal", "medium"),
        ("read", "normal", "low"),
    ],
)
def test_risk_follows_effect_and_priority(effect: str, priority: str, risk: str) -> None:
    assert risk_level(effect, priority) == risk


# --- cost: a generous bound, which a quadratic pattern would miss by minutes ---


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        " ",
        (" " * 199) + "x",
        "\n" * 20 + "x",
        "а",
        "а.",
        "a1",
        "хх/",
        "é.",
        "@é.é ",
        "aа ",
        "a\u0301\u0302\u0303",
        "a\u200d",
        "👨\u200d",
        "\\",
        "\u202e",
        "1१",
        "Привет hello שלום 🎉\n",
    ],
)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    """Squared, it would take longer than the suite lets a test run."""
    text = unit * (200_000 // len(unit.encode())) + "é"
    head, tail = head_and_tail(build_card({"a": text, text: 1}).fields[0].text)
    assert (head[0], tail[-1]) == ('"', '"')


@pytest.mark.parametrize(
    "text", ["pay\u2d7fpal", "pay\u17d2pal", "pay\u1039pal", "\u652f\u2d7f\u4ed8", "a\u0301\u17d2", "a \u1a60b"]
)
def test_a_mark_of_one_script_after_a_letter_of_another_is_shown_and_an_alarm(text: str) -> None:
    assert re.search(r"\\u\{(2d7f|17d2|1039|1a60)\}", escape_invisible(text))
    assert unescape_invisible(escape_invisible(text)) == text
    found = find_findings({"to": text, text: 1})
    assert [(each.kind, each.level) for each in found] == [("lookalike", "alarm")] * 2
    assert all("marks of one script on letters of another: U+" in each.message for each in found)


@pytest.mark.parametrize(
    "text",
    [
        "\u1781\u17d2\u1798\u17c2\u179a",  # Khmer
        "\u1000\u1019\u1039\u1018\u102c",  # Burmese
        "\u0939\u093f\u0928\u094d\u0926\u0940 A",  # Hindi
        "\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48",  # Thai
        "\u2d5c\u2d7f\u2d4f",  # Tifinagh
        "ti\u1ebfng Vi\u1ec7t, x\u0301",
    ],
)
def test_marks_of_a_script_on_its_own_letters_are_shown_as_they_are(text: str) -> None:
    assert escape_invisible(text) == text
    assert find_findings({"to": text}) == ()
    assert [each.kind for each in find_findings({"to": "\u0627\u0644\u0633\u0651\u064e\u0644"})] == ["right_to_left"]
