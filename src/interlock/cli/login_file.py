"""The keys that `interlock login` made, in a file of the user's configuration folder that only they can read.

It is never looked for in the working folder, whose author could send decisions to another server.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from interlock.cli.trusted_config import user_folder
from interlock.core.errors import Misconfigured

FILE_NAME = "logins.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A key of a person on one server."""

    url: str
    key: str = field(repr=False)
    key_id: str
    user: str
    role: str
    workspace: str
    expires_at: int
    insecure: bool = False  # http:// to another machine, as the person allowed


@dataclass(frozen=True, slots=True)
class Logins:
    """All logins by address; `current` is the one that commands use unless another server is named."""

    current: str = ""
    servers: Mapping[str, Login] = field(default_factory=dict)

    def find(self, url: str = "") -> Login | None:
        return self.servers.get(url.rstrip("/") if url else self.current)

    def add(self, login: Login) -> Logins:
        return Logins(login.url, {**self.servers, login.url: login})

    def without(self, url: str) -> Logins:
        left = {name: login for name, login in self.servers.items() if name != url}
        return replace(self, current=self.current if self.current in left else "", servers=left)


def login_path() -> Path:
    return user_folder() / FILE_NAME


def read_logins() -> Logins:
    """The logins, none if there is no file; raises Misconfigured if others can read or replace it."""
    path = login_path()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return Logins()
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}. {_REMOVE}") from None
    with os.fdopen(descriptor, "rb") as file:
        _check_private(path, os.fstat(file.fileno()))
        _check_private_folder(path.parent)
        body = file.read()
    try:
        return _parse(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Misconfigured(f"{path} is damaged. {_REMOVE}") from None


def write_logins(logins: Logins) -> Path:
    """Replace the file at once, so that a crash leaves the old or the new one; it is created with mode 0600."""
    path = login_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private_folder(path.parent)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            servers = [asdict(login) for login in logins.servers.values()]
            json.dump({"current": logins.current, "servers": servers}, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
    return path


_REMOVE = "Remove it, and log in again: interlock login URL"


def _parse(body: Mapping[str, object]) -> Logins:
    found = [Login(**each) for each in body["servers"]]  # type: ignore[attr-defined]  # of another shape: damaged
    if not all(isinstance(value, str) for login in found for value in (login.url, login.key, login.key_id, login.user)):
        raise ValueError
    return Logins(str(body["current"]), {login.url: login for login in found})


def _check_private(path: Path, seen: os.stat_result) -> None:
    if seen.st_uid != os.getuid():
        raise Misconfigured(f"{path} belongs to another user, so that its keys are not used. {_REMOVE}")
    if seen.st_mode & 0o077:
        raise Misconfigured(f"Other users can read the keys in {path}. Fix it: chmod 600 {path}")


def _check_private_folder(folder: Path) -> None:
    seen = folder.stat()
    if seen.st_uid not in (os.getuid(), 0):
        raise Misconfigured(f"{folder} belongs to another user. Set XDG_CONFIG_HOME to a folder of your own.")
    if seen.st_mode & 0o022:
        raise Misconfigured(f"Other users can write to {folder}. Fix it: chmod go-w {folder}")
