"""A corpus of arguments that are made to deceive whoever looks at them, by family: within one, values are near-equal.

Characters that cannot be told apart by eye stand as escapes, so that this file deceives nobody either.
"""

from __future__ import annotations

from itertools import chain

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
UNSEEN = (
    "\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad\u034f\u115f\u1160\u17b4\u180e\u2800\u3164\uffa0\ufffc"
)
SPACES = (
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u2028\u2029\u0085"
)
CONTROLS = "\x01\x07\x08\x0b\x0c\r\n\t\x1b\x1f\x7f\x80\x9b"
TAGS = "".join(chr(0xE0000 + ord(each)) for each in "pay eve")
LONG = "The quick brown fox jumps over the lazy dog. " * 200

FAMILIES: dict[str, list[object]] = {
    "kinds of values": [
        1, "1", True, "true", "True", False, "false", 0, "0", "-0", "1.0", 1.5, "1.5", 10, "10", None, "null",
        "None", "", " ", "  ", [], {}, "[]", "{}", [None], [[]], [{}], {"": None}, {"": ""}, [1], ["1"], {"0": 1},
        "undefined", "NaN", "\"\"", "''", 1e21, "1e21", -1, "-1", "- 1", "+1", "01", "0x1", "1,000", "1.000", 1000,
        "1 000",
    ],
    "numbers": [
        9007199254740991, 9007199254740992, 9007199254740993, 9007199254740994, "9007199254740993",
        12345678901234567890, 12345678901234567891, 0.1, 0.30000000000000004, 0.3, 1e-7, 100000000000000000000,
        1234567.89, 12345678.9, 123456789, 1e300, -9007199254740993,
    ],
    "turned text": [f"pay{each}abc" for each in BIDI] + [
        "paycba", "payabc", "\u202egpj.exe", "exe.jpg", "\u202ecod.exe",
        "/* \u202e } \u2066if (admin)\u2069 \u2066 */", "\u2067\u2066pay\u2069\u2069", "\u2066\u2067pay\u2069\u2069",
        "abc\u202e", "\u202eabc", "abc \u05d0\u05d1 123",
    ],
    "unseen characters": [f"pay{each}pal" for each in UNSEEN] + [
        "paypal", "pay\u200b\u200bpal", "paypal\u200b", "\u200bpaypal", "\u200b", "\u200b\u200b", "\u200c\u200b",
        TAGS, f"pay{TAGS}pal", "paypal\ufe0f", "paypal\ufe0e", "pay\ufe01pal", "a\U000e0100", "a\U000e0101",
        "\u2764", "\u2764\ufe0f", "\U0001f44d\u200d\U0001f44d", "\U0001f44d\U0001f44d", "\ue000", "\U000f0000",
        "\u0378",
    ],
    "odd spaces": [f"10{each}000" for each in SPACES] + [
        "10 000", "10  000", "10   000", " 10 000", "10 000 ", "10 000  ", "  10 000", "10\t000", "10\t\t000",
        "10 \t000", "10\n000", "10\r000", "10\r\n000", "10\n\n000", "10\\n000", "10\\\\n000", "10\\t000",
        "10\\u{a0}000",
    ],
    "control codes": [f"ok{each}no" for each in CONTROLS] + [
        "okno", "ok\x1b[2K\rno", "\x1b[31mred\x1b[0m", "[31mred[0m", "\\x1b[31mred",
        "\x1b]8;;http://evil.example\x07x\x1b]8;;\x07", "^[[31m", "ok\x08\x08no", "\x9b31mred",
        "delete\x1b[8mhidden\x1b[28m",
    ],
    "escapes that imitate ours": [
        "\u202e", "\\u{202e}", "\\\\u{202e}", "\\\u202e", "\\u202e", "\\u{202E}", "\\U0000202e", "&#x202e;", "&rlm;",
        "\\", "\\\\", "\\\\\\", "\"", "\\\"", "\\\\\"", "a\"b", "a\\\"b", "\\n", "\n", "\\\n", "\\\\n", "u{202e}",
        "%E2%80%AE", "\\u{5c}u{202e}",
    ],
    "look-alike letters": [
        "paypal", "p\u0430ypal", "payp\u0430l", "p\u0430yp\u0430l", "\u0440\u0430\u0443\u0440\u0430l", "pa\u0443pal",
        "PAYPAL", "P\u0410YPAL", "paypa\u0406", "paypa1", "paypaI", "p\u03b1ypal", "p\uff41ypal",
        "\U0001d429\U0001d41a\U0001d432pal", "\u1d18aypal", "rn", "m", "vv", "w", "\u0455cope", "scope", "\u0501",
        "d", "\u212aelvin", "Kelvin", "\u212bngstrom", "\u00c5ngstrom", "\u2126", "\u03a9", "\u0131", "i", "\u017f",
        "s", "\u04cf", "l", "\u01c3", "!", "\u037e", ";", "\u2044", "/", "\u2215", "\u29f8", "\uff0f", "\u2024", ".",
        "\uff0e", "\u3002", "\uff1a", ":", "\u2236", "\u02d0", "\u2018", "\u2019", "'", "\u0060", "\u00b4", "-",
        "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212", "\u30fc", "\u4e00", "~", "\u02dc", "\u223c",
    ],
    "hosts": [
        "https://example.com/pay", "https://ex\u0430mple.com/pay", "https://examp\u04cfe.com/pay",
        "https://example.com\u2044pay.evil.example", "https://example.com@evil.example/pay",
        "https://example.com%2f@evil.example", "https://xn--exmple-4nf.com/pay", "https://example\u3002com/pay",
        "https://example.com\u200b/pay", "https://example.com./pay", "https://EXAMPLE.com/pay",
        "https://example.com:443/pay", "https://exam\u00adple.com/pay",
        "https://\u0435\u0445\u0430\u043c\u0440\u04cf\u0435.com", "https://b\u00fccher.example",
        "https://b\u0075\u0308cher.example", "https://buecher.example", "https://example.com\\@evil.example",
        "https://example.com/pay ", "ann@example.com", "ann@ex\u0430mple.com", "\u0430nn@example.com",
        "ann@example.co", "ann@example.com.evil.example", "ann@exam\u200bple.com",
        "\"ann@example.com\"@evil.example", "ann@example.com,eve@evil.example", "file:///etc/passwd",
    ],
    "composed and decomposed": [
        "caf\u00e9", "cafe\u0301", "cafe\u0301\u0301", "cafe", "\u00c5", "A\u030a", "\u1e69", "s\u0323\u0307",
        "s\u0307\u0323", "\u0301e", "e\u0301", "\ud55c", "\u1112\u1161\u11ab", "n\u0303", "\u00f1",
        "Z\u0351\u036b\u0343\u036a\u0302", "p\u0336a\u0336y", "pay", "a\u20e0", "a\u0338", "\u1100\u1161", "\uac00",
        "\u0958", "\u0915\u093c", "i\u0307", "\u0130", "1\u20e3", "1\ufe0f\u20e3",
    ],
    "forged markup": [
        "<b>approved</b>", "&lt;b&gt;approved&lt;/b&gt;", "approved", "**approved**", "__approved__", "*approved*",
        "`approved`", "# approved", "[approved](https://evil.example)", "![approved](https://evil.example/x.png)",
        "<https://evil.example>", "<img src=x onerror=\"window.deceived=1\">", "<script>window.deceived=1</script>",
        "<svg onload=window.deceived=1>", "<a href=\"javascript:window.deceived=1\">x</a>",
        "javascript:window.deceived=1", "</span></div><button>Approve</button>", "<style>*{display:none}</style>",
        "<iframe src=https://evil.example></iframe>", "<!-- hidden -->", "hidden", "<br>", "<br/>",
        "{{window.deceived=1}}", "${window.deceived=1}", "&nbsp;", "&amp;", "&", "&amp;amp;",
        "<input type=checkbox checked> Checked", "\" onmouseover=\"window.deceived=1", "]]><x/>",
        "- [x] looked at", "| a | b |\n|---|---|", "```\ncode\n```", "<details open>", "<u>approved</u>",
        "<mark data-code=\"x\">approved</mark>", "\u2705 Approved by ann", "Approved by ann",
    ],
    "forged lines": [
        "5\"\namount: \"5000", "5\\\"\\namount: \\\"5000", "5, amount: 5000", "5\n\n\n\namount: 5000", "a\nb", "a b",
        "a\\nb", "hidden, fingerprint 0123456789abcdef", "secret", "3 characters, SHA-256 abc",
        "Show all 9 characters", "\u2026", "...", "a \u2026 b", "a ... b", "string", "number 5", "\"quoted\"",
        "\u201cquoted\u201d", "'quoted'", "quoted", " quoted", "quoted ",
    ],
    "long": [
        LONG, LONG.replace("lazy", "busy", 1), f"{LONG[:4000]}x{LONG[4001:]}", f"{LONG[:4000]} {LONG[4000:]}",
        LONG + " ", LONG + ".", LONG * 2, "a" * 2000, "a" * 2001, "a" * 2002, "a" * 10_000,
        "a" * 5_000 + "b" + "a" * 4_999, "a" * 4_999 + "b" + "a" * 5_000, "a" * 50 + " " * 300 + "and delete all",
        "a" * 50 + "\n" * 60 + "and delete all", "w" * 100_000, "w" * 99_999 + "v", "\u202e" * 3_000,
        "\u202e" * 3_001, "\u200b" * 2_500, "x" + "\u200b" * 2_499, "0" * 2_500, "\u4e00" * 2_500, "\\" * 2_500,
        "\\" * 2_502, "\"" * 2_500,
    ],
    "nested": [
        {"to": "ann"}, {"to": ["ann"]}, {"to": {"0": "ann"}}, [["to", "ann"]], ["to", "ann"],
        {"to": "ann", "cc": None}, {"to": "ann", "cc": ""}, {"to": "ann", "cc": []}, {"to": {"ann": {}}},
        {"to": {"ann": []}}, {"to": {"ann": None}}, {"to.cc": "ann"}, {"to": {"cc": "ann"}}, {"to/cc": "ann"},
        {"to~1cc": "ann"}, [[1, 2], 3], [1, [2, 3]], [1, 2, 3], [[1], [2], [3]], [[[1, 2, 3]]], {"a": 1, "b": 2},
        {"a": {"b": 2}}, {"to ": "ann"}, {" to": "ann"}, {"t\u043e": "ann"}, {"to\u200b": "ann"},
        {"\u202eto": "ann"}, {"to": "ann", "to ": "eve"}, {"to": "ann", "t\u043e": "eve"}, {"a\nb": 1}, {"a\\nb": 1},
        {"<b>": 1}, {"__proto__": 1}, {"constructor": 1}, {"a": {"a": {"a": {"a": {"a": 1}}}}},
        {"a": {"a": {"a": {"a": 1}}}}, [{"a": 1}, {"a": 2}], [{"a": 1, "b": 2}], {"true": 1}, {"null": 1}, {"1": 1},
    ],
}  # fmt: skip

# Values that nobody tells apart without help: the card has to look different for each pair.
PAIRS: list[tuple[object, object]] = [
    (1, "1"),
    (True, "true"),
    (None, "null"),
    ("paypal", "p\u0430ypal"),
    ("paypal", "pay\u200bpal"),
    ("example.com", "ex\u0430mple.com"),
    ("payabc", "pay\u202eabc"),
    ("10 000", "10\u00a0000"),
    ("10 000", "10  000"),
    ("10 000", "10 000 "),
    ("caf\u00e9", "cafe\u0301"),
    ("a\nb", "a\\nb"),
    ("\u202e", "\\u{202e}"),
    (9007199254740992, 9007199254740993),
    ("a" * 5_000 + "b" + "a" * 4_999, "a" * 4_999 + "b" + "a" * 5_000),
    ([], {}),
    ("", " "),
    ("\u212aelvin", "Kelvin"),
]

# Names of arguments; each stands for another one.
NAMES = [
    "to", "to ", " to", "t\u043e", "to\u200b", "\u202eot", "TO", "t o", "t\u00a0o", "to:", "\"to\"", "to\n", "to\\n",
    "<b>to</b>", "**to**", "to\u0301", "t\u00f3", "to\u0301\u0301", "\uff54o", "to\ufe0f", "to/cc", "to~cc", "to\\",
    "to\\\\", "0", "__proto__", "constructor", "toString", "x" * 300, "x" * 301,
]  # fmt: skip


def values() -> list[object]:
    return list(chain.from_iterable(FAMILIES.values()))
