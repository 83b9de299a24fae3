"""Ed25519 signatures of ledger heads (checkpoints): proof that the holder of the key stated the ledger's head."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from interlock.core.errors import Misconfigured
from interlock.core.ledger.chain import SignedHead, key_fingerprint

HEX_KEY = re.compile(r"[0-9a-f]{64}")
MAX_KEY_FILE = 100_000
KEYGEN_HINT = "Create one: interlock audit keygen FILE"


class Ed25519Signer:
    """The HeadSigner port over a private key in memory."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.key = private.public_key().public_bytes_raw().hex()

    def sign(self, data: bytes) -> str:
        return self._private.sign(data).hex()


def make_key(path: Path) -> Ed25519Signer:
    """Write a new private key that only its owner can read; an existing file is never replaced."""
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Misconfigured(f"{path} already exists, and a key is never replaced. Choose another name.") from None
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)  # regardless of the umask
        file.write(pem)
        file.flush()
        os.fsync(descriptor)
    return Ed25519Signer(private)


def load_signer(path: Path) -> Ed25519Signer:
    try:
        private = load_pem_private_key(_read_key_file(path), None)
    except TypeError:
        raise Misconfigured(
            f"The signing key {path} is locked with a password. Give one without. {KEYGEN_HINT}"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise Misconfigured(f"{path} is not a private key in PEM form. {KEYGEN_HINT}") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise Misconfigured(f"The signing key {path} is not an Ed25519 key. {KEYGEN_HINT}")
    return Ed25519Signer(private)


def read_public_key(given: str) -> str:
    """Read a public key: in hex, or a file that holds one in hex or as PEM."""
    if HEX_KEY.fullmatch(given.lower()):
        return given.lower()
    data = _read_key_file(Path(given))
    text = data.decode("ascii", "replace").strip().lower()
    if HEX_KEY.fullmatch(text):
        return text
    try:
        public = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        public = None
    if not isinstance(public, Ed25519PublicKey):
        raise Misconfigured(f"{given} holds no public key: 64 hex digits, or an Ed25519 public key as PEM.")
    return public.public_bytes_raw().hex()


def has_valid_signature(signed: SignedHead) -> bool:
    """Whether the key in the head signed exactly these values."""
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signed.key))
        public.verify(bytes.fromhex(signed.signature), signed.signed_bytes)
    except (InvalidSignature, ValueError):
        return False
    return True


def distrust_reason(signed: SignedHead, trusted: str) -> str:
    """Why a head is not trusted; empty if it is. `trusted` is a public key, or empty for any."""
    if not signed.key:
        return "is not signed" if trusted else ""
    if not has_valid_signature(signed):
        return "was altered: its signature does not match"
    if trusted and signed.key != trusted:
        return f"is signed by another key: fingerprint {key_fingerprint(signed.key)}, not {key_fingerprint(trusted)}"
    return ""


def _read_key_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_KEY_FILE)
    except OSError as error:
        raise Misconfigured(f"The key {path} cannot be read: {error.strerror}.") from None
