"""Signed checkpoints: Ed25519 over ledger heads, and their text form."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from interlock.app.checkpoint_signing import (
    Ed25519Signer,
    distrust_reason,
    has_valid_signature,
    load_signer,
    make_key,
    read_public_key,
)
from interlock.config.load import load_settings
from interlock.core.errors import Misconfigured
from interlock.core.ledger.chain import Head, SignedHead, key_fingerprint, sign

HEAD = Head("default", 3, "a" * 64, 9)
SIGNER, STRANGER = (Ed25519Signer(Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32)) for n in (1, 2))
SIGNED = sign(HEAD, SIGNER, 10)


# R49
def test_a_new_key_is_its_owners_alone_and_signs_again_when_it_is_loaded(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        made = make_key(tmp_path / "key.pem")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    loaded = load_signer(tmp_path / "key.pem")
    assert loaded.key == made.key
    assert loaded.sign(b"x") == made.sign(b"x")
    assert made.key != make_key(tmp_path / "other.pem").key


# R49
def test_a_key_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    make_key(path)
    before = path.read_bytes()
    with pytest.raises(Misconfigured, match="already exists"):
        make_key(path)
    assert path.read_bytes() == before


# R49
def test_the_signature_can_be_checked_without_us() -> None:
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(SIGNED.key))
    assert public.verify(bytes.fromhex(SIGNED.signature), SIGNED.signed_bytes) is None


# R49
def test_a_signed_head_is_genuine_until_anything_in_it_changes() -> None:
    assert has_valid_signature(SIGNED)
    for changed in (
        replace(SIGNED, head=HEAD._replace(workspace="other")),
        replace(SIGNED, head=HEAD._replace(seq=2)),
        replace(SIGNED, head=HEAD._replace(link="b" * 64)),
        replace(SIGNED, head=HEAD._replace(at=8)),
        replace(SIGNED, signed_at=11),
        replace(SIGNED, key=STRANGER.key),
        replace(SIGNED, signature="00" * 64),
        replace(SIGNED, signature=SIGNED.signature[2:]),
        replace(SIGNED, signature="not hex"),
        replace(SIGNED, key="not hex"),
        replace(SIGNED, key="ab"),
    ):
        assert not has_valid_signature(changed), changed
        assert distrust_reason(changed, "") == "was altered: its signature does not match"


# R49
def test_with_a_key_only_what_it_signed_is_trusted() -> None:
    assert distrust_reason(SIGNED, SIGNER.key) == ""
    assert distrust_reason(SignedHead(HEAD), SIGNER.key) == "is not signed"
    both = f"fingerprint {key_fingerprint(SIGNER.key)}, not {key_fingerprint(STRANGER.key)}"
    assert distrust_reason(SIGNED, STRANGER.key) == f"is signed by another key: {both}"


# R49
def test_without_a_key_an_unsigned_head_is_taken_as_it_is() -> None:
    assert (distrust_reason(SignedHead(HEAD), ""), distrust_reason(SIGNED, "")) == ("", "")


# R49
def test_a_public_key_is_read_from_hex_and_from_files(tmp_path: Path) -> None:
    public = Ed25519PrivateKey.from_private_bytes(b"\1" * 32).public_key()
    (tmp_path / "pem").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "hex").write_text(f"{SIGNER.key.upper()}\n")
    for given in (SIGNER.key, SIGNER.key.upper(), str(tmp_path / "pem"), str(tmp_path / "hex")):
        assert read_public_key(given) == SIGNER.key


# R49
@pytest.mark.parametrize("content", [b"", b"no key", b"ab" * 31, b"\xff\x00", "private", "ec"])
def test_what_is_no_public_key_is_refused(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "key"
    path.write_bytes(content if isinstance(content, bytes) else pems(content))
    with pytest.raises(Misconfigured, match="holds no public key"):
        read_public_key(str(path))


# R49
def test_a_key_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    for read in (lambda: read_public_key(str(tmp_path / "none")), lambda: load_signer(tmp_path / "none")):
        with pytest.raises(Misconfigured, match="cannot be read: No such file or directory"):
            read()


# R49
@pytest.mark.parametrize(
    ("kind", "found"),
    [("ec private", "is not an Ed25519 key"), ("locked", "locked with a password"), ("ec", "not a private key in PEM")],
)
def test_what_cannot_sign_is_refused(tmp_path: Path, kind: str, found: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(pems(kind))
    with pytest.raises(Misconfigured, match=found):
        load_signer(path)


def pems(kind: str) -> bytes:
    own, other = Ed25519PrivateKey.generate(), generate_private_key(SECP256R1())
    match kind:
        case "private":
            return own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        case "locked":
            return own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
        case "ec private":
            return other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        case _:
            return other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


# --- where the key is named


# R49
def test_the_signing_key_is_named_in_the_configuration_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "interlock.yaml"
    file.write_text("audit: {signing_key: keys/sign.pem}")
    assert load_settings(None, {}).audit.signing_key is None
    assert load_settings(file, {}).audit.signing_key == tmp_path / "keys" / "sign.pem"
    given = load_settings(file, {"INTERLOCK_SIGNING_KEY": "mine.pem"}).audit.signing_key
    assert given == Path("mine.pem").absolute(), "from the working folder, and before the file"


# R49
def test_a_misspelt_name_of_the_signing_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "interlock.yaml"
    file.write_text("audit: {sining_key: a.pem}")
    with pytest.raises(Misconfigured, match='did you mean "signing_key"'):
        load_settings(file, {})
