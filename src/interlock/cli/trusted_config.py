"""Settings of `interlock hook` and `interlock mcp-gate`, which are never read from the working folder.

A client starts them in the folder where its agent works, and an author of that folder could add a policy that allows
everything.
"""

from __future__ import annotations

import os
from pathlib import Path

from interlock.app.bootstrap import is_relative_database_url
from interlock.config.load import DEFAULT_FILE, child_environment, load_settings
from interlock.config.models import Settings
from interlock.core.errors import Misconfigured


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
        f"INTERLOCK_DATABASE_URL={line}, or write storage: {{url: {line}}} into {_user_path()}."
    )


def find_user_file() -> Path | None:
    """The file in the user's configuration folder, if any; raises Misconfigured if others could have written it."""
    file = _user_path()
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


def _user_path() -> Path:
    return user_folder() / DEFAULT_FILE
