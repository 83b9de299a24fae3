"""Signed ledger heads as text: printing and parsing agree, and the signature covers every field."""

import json

import pytest

from interlock.core.ledger.chain import Head, SignedHead, key_fingerprint, read_head, sign

HEAD = Head("default", 3, "aa", 9)
KEY = "ab" * 32


class FakeSigner:
    """A signer that can be seen through."""

    key = KEY

    def sign(self, data: bytes) -> str:
        return f"signed {data.decode()}"


# R49
def test_without_a_key_a_head_stays_as_it_was() -> None:
    assert sign(HEAD, None, 10).to_json() == HEAD.to_json()
    assert sign(HEAD, None, 10) == SignedHead(HEAD, 0, "", "")


# R49: spelled out, since others verify it
def test_the_signature_is_over_all_the_other_members() -> None:
    signed = sign(HEAD, FakeSigner(), 10)
    body = signed.to_json()
    covered = (
        f'{{"at":9,"fingerprint":"{key_fingerprint(KEY)}","key":"{KEY}","link":"aa","seq":3,'
        '"signed_at":10,"workspace":"default"}'
    )
    assert body.pop("signature") == f"signed {covered}"
    assert json.dumps(body, sort_keys=True, separators=(",", ":")) == covered
    assert signed.signed_bytes == covered.encode()


# R49
def test_what_is_printed_is_what_is_read() -> None:
    for signed in (SignedHead(HEAD), sign(HEAD, FakeSigner(), 10)):
        assert read_head(json.loads(json.dumps(signed.to_json()))) == signed


# R49
def test_a_fingerprint_is_the_beginning_of_a_digest_of_the_key() -> None:
    assert key_fingerprint("") == "e3b0c44298fc1c14"
    assert len({key_fingerprint(KEY), key_fingerprint("00" * 32)}) == 2


SIGNED = sign(HEAD, FakeSigner(), 10).to_json()


# R49
@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"seq": 1},
        {**HEAD.to_json(), "note": "trust me"},
        {**HEAD.to_json(), "seq": "3"},
        {**HEAD.to_json(), "link": None},
        {**HEAD.to_json(), "key": KEY},
        {**SIGNED, "note": "trust me"},
        {**SIGNED, "seq": None},
        {**SIGNED, "signed_at": "now"},
        {**SIGNED, "signature": None},
        {**SIGNED, "fingerprint": key_fingerprint("00" * 32)},
        {**SIGNED, "key": "", "fingerprint": key_fingerprint("")},
        {name: value for name, value in SIGNED.items() if name != "signature"},
    ],
)
def test_what_is_not_a_head_is_not_read_as_one(body: object) -> None:
    assert read_head(body) is None
