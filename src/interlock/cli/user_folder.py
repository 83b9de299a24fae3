"""The user's own configuration folder: the configuration file of hooks and gates, and the keys of `interlock login`.

Neither is looked for in the working folder: its author could add a policy that allows everything, or send decisions to
another server. A client starts `interlock hook` and `interlock mcp-gate` in the folder where its agent works.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from interlock.app.bootstrap import is_relative_database_url
from interlock.config.load import DEFAULT_FILE, child_environment, load_settings
from interlock.config.models import Settings
from interlock.core.errors import Misconfigured
from interlock.core.identity import ROLES
from interlock.sdk.transport import spell_address

LOGINS_FILE = "logins.json"
PAGES = frozenset(
    {
        *("signin", "welcome", "chat", "inbox", "a", "history", "statistics", "agents", "connect", "content", "okrs"),
        *("policy", "settings"),
    }
)  # where the path of a page of the web app begins
_KEY = re.compile(r"(ilk_[a-z0-9]{8})_[A-Za-z0-9_-]{1,200}")


# Logins


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
    """All logins by address, the newest last; `current` is the one that commands use unless another server is named."""

    current: str = ""
    servers: Mapping[str, Login] = field(default_factory=dict)

    def find(self, url: str = "") -> Login | None:
        """The login at an address, or at the server whose page this is the address of."""
        if not url:
            return self.servers.get(self.current)
        return self.servers.get(spell_address(url)) or self.servers.get(spell_address(without_page(url)))

    def add(self, login: Login) -> Logins:
        return Logins(login.url, {**self.without(login.url).servers, login.url: login})

    def without(self, url: str) -> Logins:
        """If it was the current one, the newest that is left becomes it: else commands would use the working folder."""
        left = {name: login for name, login in self.servers.items() if name != url}
        return Logins(self.current if self.current in left else next(reversed(left), ""), left)


def without_page(url: str) -> str:
    """The server's part of a page's address; an address with a fragment, such as a sign-in link, is left as it is.

    This is a guess: a server may be below a path that begins as a page does. No secret is sent to what it gives before
    a server answered there.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    names = parts.path.split("/")
    page = next((place for place, name in enumerate(names) if place and name in PAGES), None)
    if page is None or parts.fragment:
        return url
    return parts._replace(path="/".join(names[:page]), query="").geturl()


def check_login(login: Login) -> Login:
    """Raises ValueError if it is none that a server could have made: then it could not be read again."""
    key = _KEY.fullmatch(login.key)
    if key is None or key[1] != login.key_id or login.role not in ROLES or not login.url or login.expires_at < 0:
        raise ValueError("the key")
    return login


def login_path() -> Path:
    return user_folder() / LOGINS_FILE


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
        return _parse_logins(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
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


def _parse_logins(body: Mapping[str, Any]) -> Logins:
    """One entry that is damaged does not cost the others."""
    found = [login for login in map(_parse_login, body["servers"]) if login is not None]
    if body["servers"] and not found:
        raise ValueError
    logins = Logins(str(body["current"]), {login.url: login for login in found})
    return logins.without("") if logins.find() is None else logins


def _parse_login(entry: Mapping[str, Any]) -> Login | None:
    """The login; None if it is damaged. Fields that this version does not know are ignored."""
    try:
        known = {each.name: entry[each.name] for each in fields(Login) if each.name in entry}
        texts = [value for name, value in known.items() if name not in ("expires_at", "insecure")]
        if not all(isinstance(value, str) for value in texts) or not isinstance(known["expires_at"], int):
            return None
        return check_login(Login(**known))
    except (ValueError, KeyError, TypeError):
        return None


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


# The configuration file


def trusted_settings(config: Path | None, database: str) -> Settings:
    """The settings from the options, the INTERLOCK_ variables, or the user's own file; raises Misconfigured."""
    settings = load_settings(config, overrides={"storage.url": database or None}, find=find_user_file)
    file = settings.file
    if config is None and file is not None and not file.is_absolute():
        raise Misconfigured(
            f"INTERLOCK_CONFIG is {file}, which depends on the working folder. Give the absolute path: "
            "INTERLOCK_CONFIG=/folder/interlock.yaml."
        )
    return settings


def trusted_database(settings: Settings) -> str:
    """The database's address; raises Misconfigured if it depends on the working folder."""
    url = settings.storage.url
    if is_relative_database_url(url):
        raise Misconfigured(_config_hint(url))
    return url


def _config_hint(url: str) -> str:
    """An error message with the line to add."""
    line = f"sqlite:///{Path.home() / 'interlock.db'}"
    return (
        f"No database is given with an absolute path. A relative one ({url}) is not used: the author of the "
        f"working folder could allow everything. Add --database {line} to the command, or set "
        f"INTERLOCK_DATABASE_URL={line}, or write storage: {{url: {line}}} into {_config_path()}."
    )


def find_user_file() -> Path | None:
    """The file in the user's configuration folder, if any; raises Misconfigured if others could have written it."""
    file = _config_path()
    if not file.is_file():
        return None
    for path in (file, file.parent):
        seen = path.stat()
        if seen.st_uid not in (os.getuid(), 0):
            raise Misconfigured(f"{path} belongs to another user. Give the configuration: --config FILE.")
        if seen.st_mode & 0o022:
            raise Misconfigured(f"Other users can write to {path}. Fix it: chmod go-w {path}")
    return file


def user_folder() -> Path:
    """The user's configuration folder. A relative XDG folder is ignored, as the XDG specification requires."""
    folder = Path(child_environment().get("XDG_CONFIG_HOME", ""))
    return (folder if folder.is_absolute() else Path.home() / ".config") / "interlock"


def _config_path() -> Path:
    return user_folder() / DEFAULT_FILE
