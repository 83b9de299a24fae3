"""Masking: a stored report contains no secret argument that it repeats."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import ToolSpec, redact
from interlock.core.canonical import canonical, read_canonical
from interlock.core.ledger.event import Payload
from interlock.core.masking import MASK, MAX_SECRETS, mask_report, mask_text

SECRET = 's3cret/päss\n"word"'


def stored_payload(args: dict[str, object], *secret: str) -> Payload:
    data = canonical(args)
    shown = redact(data, ToolSpec("login", "write", secret=secret), b"key").data
    return Payload(data, None if shown == data else shown)


STORED = stored_payload({"user": "ann", "password": SECRET}, "password")


def masked_result(value: object, stored: Payload = STORED) -> object:
    return read_canonical(mask_report(Payload(result=canonical(value)), stored).result or b"")


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        's3cret/p\\u00e4ss\\n\\"word\\"',
        's3cret/päss\\n\\"word\\"',
        repr(SECRET)[1:-1],
        "s3cret%2Fp%C3%A4ss%0A%22word%22",
        "s3cret/p%c3%a4ss%0a%22word%22",
        b64encode(SECRET.encode()).decode(),
        b64encode(SECRET.encode()).decode().rstrip("="),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        "".join(f"%{byte:02x}" for byte in SECRET.encode()),
        "".join(f"%{byte:02X}" for byte in SECRET.encode()),
    ],
)
def test_every_spelling_of_a_secret_is_hidden_in_error_and_result(spelled: str) -> None:
    result = mask_report(Payload(error=f"401 for {spelled}."), STORED)
    assert result.error == f"401 for {MASK}."
    assert masked_result({"log": [f"-> {spelled} <-", 1]}) == {"log": [f"-> {MASK} <-", 1]}


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "z", "zy", "zyx"])
@pytest.mark.parametrize("secret", ["correct horse", "correct?>horse", "correct!>?horse", "four"])
def test_a_secret_inside_of_what_was_encoded_in_base64_is_hidden(
    encode: Callable[[bytes], bytes], before: str, after: str, secret: str
) -> None:
    """At most one character on each side is left, which also holds bits of what is around the secret."""
    text = encode(f"{before}{secret}{after}".encode()).decode()
    result = mask_report(Payload(error=f"Basic {text}"), stored_payload({"key": secret}, "key")).error or ""
    head, tail = result.removeprefix("Basic ").split(MASK)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) <= -(-4 * len(before) // 3)
    assert len(tail.rstrip("=")) <= -(-4 * len(after) // 3) + 1


@pytest.mark.parametrize(
    "spelled",
    ["it's%20(so)!%2F%26", "it's%20(so)!/&", "it%27s+%28so%29%21%2F%26", "it%27s%20%28so%29%21/%26"],
    ids=["encodeURIComponent", "encodeURI", "form", "path"],
)
def test_a_secret_in_an_address_as_browsers_and_programs_write_it_is_hidden(spelled: str) -> None:
    assert mask_text(f"?{spelled}#", *both({"key": "it's (so)!/&"}, "key")) == f"?{MASK}#"


def test_names_inside_of_a_secret_object_are_hidden() -> None:
    stored = stored_payload({"tokens": {"tok-4711": {"t1": True}}, "plain": {"name": 1}}, "tokens")
    assert masked_result({"tok-4711": 1, "name": "tok-4711 t1 name"}, stored) == {MASK: 1, "name": f"{MASK} t1 name"}
    assert masked_result({"t1": "t1"}, stored) == {MASK: MASK}


def test_field_names_of_a_secret_object_are_not_secret() -> None:
    stored = stored_payload({"card": {"number": "4000-1", "expiry_month": 7, "a" * 33: 1}}, "card")
    report = f"The number 4000-1 does not fit expiry_month of {'a' * 33}."
    assert mask_report(Payload(error=report), stored).error == f"The number {MASK} does not fit expiry_month of {MASK}."


def test_names_that_repeat_count_once() -> None:
    stored = stored_payload({"cards": [{"owner 1": True, "number 1": False}] * MAX_SECRETS}, "cards")
    assert mask_report(Payload(error="quiet"), stored).error == "quiet"


def both(args: dict[str, object], *secret: str) -> tuple[bytes, bytes]:
    stored = stored_payload(args, *secret)
    return stored.args or b"", stored.shown or b""


def test_names_in_a_result_are_hidden_as_well_and_stay_apart() -> None:
    assert masked_result({f"a {SECRET}": 1, f"a {MASK}": 2, "b": 3}) == {f"a {MASK}": 2, f"a {MASK} 1": 1, "b": 3}


def test_what_repeats_no_secret_is_kept_byte_for_byte() -> None:
    report = Payload(result=b'{"b":[true,null,1.5,"ann"]}', error="none of it")
    assert mask_report(report, STORED) == report
    assert mask_report(report, stored_payload({"user": "ann"})) == report


def test_a_short_secret_is_hidden_only_where_it_is_all_of_a_text() -> None:
    stored = stored_payload({"pin": "abc"}, "pin")
    assert masked_result(["abc", "abcd", {"abc": 1}], stored) == [MASK, "abcd", {MASK: 1}]


def test_numbers_and_what_is_inside_of_a_secret_are_hidden() -> None:
    card = {"number": 4111111111111111, "owners": ["Ann Lee", True, None, ""], "cvc": 123}
    stored = stored_payload({"card": card}, "card")
    report = ["4111111111111111 of Ann Lee", 4111111111111111, 123, "123", 1234, True]
    assert masked_result(report, stored) == [f"{MASK} of {MASK}", MASK, MASK, MASK, 1234, True]


def test_only_what_people_do_not_see_is_a_secret() -> None:
    mark = {"$secret": "not a fingerprint"}
    stored = stored_payload({"all": [{"key": "hidden-one", "mark": mark}, 5], "mark": mark}, "/all/*/key")
    assert masked_result(["hidden-one", "not a fingerprint"], stored) == [MASK, "not a fingerprint"]


def test_where_shown_and_stored_arguments_differ_in_shape_nothing_is_taken_for_a_secret() -> None:
    stored = Payload(b'{"a":1,"b":2}', b'{"a":{"c":3},"b":[4]}')
    assert masked_result({"x": 1}, stored) == {"x": 1}


def test_where_a_shown_list_is_longer_or_shorter_than_the_stored_one_what_both_have_is_hidden() -> None:
    one, two = '{"$secret":"f"}', '{"$secret":"f"},{"$secret":"g"}'
    for stored, shown in (('"hidden-one"', two), ('"hidden-one","more"', one)):
        row = Payload(f'{{"all":[{stored}]}}'.encode(), f'{{"all":[{shown}]}}'.encode())
        assert masked_result(["hidden-one", "more"], row) == [MASK, "more"]


def test_of_a_longer_secret_nothing_is_left_by_a_shorter_one_inside_it() -> None:
    stored = stored_payload({"a": "token", "b": "token-and-more"}, "*")
    assert mask_report(Payload(error="token-and-more, token"), stored).error == f"{MASK}, {MASK}"


def test_once_the_arguments_were_erased_nothing_of_a_report_is_kept() -> None:
    assert mask_report(Payload(result=b'"x"'), Payload()) == Payload(result=canonical(MASK))
    assert mask_report(Payload(error="x"), Payload()) == Payload(error=MASK)


def test_more_than_can_be_looked_through_is_hidden_as_a_whole() -> None:
    many = stored_payload({"keys": [f"secret-{number}" for number in range(MAX_SECRETS)]}, "keys")
    assert mask_report(Payload(error="x" * 20_000), many).error == MASK
    assert masked_result(["secret-1"] * 9_000, stored_payload({"key": "secret-1"}, "key")) == [MASK] * 9_000


def test_a_result_that_the_marks_would_make_too_large_is_hidden_as_a_whole() -> None:
    assert masked_result(["key" for _ in range(100_000)], stored_payload({"key": "key"}, "key")) == MASK


def test_texts_about_a_call_are_stored_without_its_secrets() -> None:
    args, shown = STORED.args or b"", STORED.shown or b""
    assert mask_text(f"Log in with {SECRET}", args, shown) == f"Log in with {MASK}"
    assert mask_text("Log in", args, shown) == "Log in"
    assert mask_text("Log in", args, args) == "Log in"
    assert mask_text("", args, shown) == ""


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=4, max_size=30),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_no_secret_is_left_in_any_text_around_it(secret: str, before: str, after: str) -> None:
    stored = Payload(canonical({"key": secret}), b'{"key":{"$secret":"f"}}')
    result = mask_report(Payload(error=before + secret + after), stored).error or ""
    assert secret not in result.replace(MASK, "\0")


def test_a_search_that_python_would_make_in_quadratic_time_is_padded() -> None:
    """A text of the same letter, and a secret that differs in the middle: 14 s for such a report before."""
    secret = "a" * 1_000 + "/" + "a" * 1_000
    stored = stored_payload({"key": secret}, "key")
    plain = Payload(error="a" * 2_400)
    assert mask_report(plain, stored) == plain
    assert mask_report(Payload(error=f"<{secret}>"), stored).error == f"<{MASK}>"
    assert masked_result([secret, "a" * 2_400, secret], stored) == [MASK, "a" * 2_400, MASK]


def test_more_secrets_than_can_be_searched_hide_the_whole_report() -> None:
    few, many = (
        stored_payload({"keys": [f"s{n:05}" for n in range(count)]}, "keys") for count in (MAX_SECRETS, MAX_SECRETS + 1)
    )
    report = Payload(error="quiet", result=b'"plain"')
    assert mask_report(report, few) == report
    assert mask_report(report, many) == Payload(error=MASK, result=canonical(MASK))


def test_a_secret_number_is_hidden_in_a_result_without_texts() -> None:
    assert masked_result([123456, 7, None, True], stored_payload({"pin": 123456}, "pin")) == [MASK, 7, None, True]
