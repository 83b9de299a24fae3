"""`interlock hook`: the hook that Claude Code starts for each tool call. On any error the call is denied.

Import nothing here that an allowed read does not need: every call waits for these imports.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from interlock.app.bootstrap import (
    approval_link,
    database_option,
    is_relative_database_url,
    missing_database_file,
    os_user,
)
from interlock.core.canonical import parse_json
from interlock.core.errors import Error, InvalidRequest, Misconfigured
from interlock.core.run import MAX_LEASE
from interlock.integrations.claude_code import (
    AFTER,
    GRACE,
    UNDECIDED,
    Hook,
    HookAnswer,
    HookBackend,
    HookEvent,
    HookIdentity,
    HookOptions,
    answer_json,
    parse_event,
    parse_reads,
)
from interlock.runtime.durations import parse_duration
from interlock.runtime.process_identity import (
    BLOCKED_EXIT_STATUS,
    INTERRUPTED_MESSAGE,
    answer_on_signal,
    ignore_signals,
)

if TYPE_CHECKING:
    from interlock.config.models import Settings
    from interlock.policy.file import ConfiguredPolicy
from typing import TYPE_CHECKING

from interlock.app.bootstrap import build_gate, load_stored_policy, make_database
from interlock.app.gate import Execution, Gate
from interlock.core.call import DEFAULT_WORKSPACE, ToolCall, ToolSpec
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Outcome
from interlock.core.policy.policy import Policy
from interlock.storage.store import SqlStore

if TYPE_CHECKING:  # slow to import, and most hooks have no configured policy
    from interlock.policy.file import ConfiguredPolicy


EXIT_NOT_RECORDED = 1  # after the tool there is nothing to block: shown to the user, not to the model
NO_RECORD = "Interlock could not record the outcome of this call."
MAX_EVENT = 64 * 1024 * 1024  # bytes; after the tool an event holds its result


@dataclass(frozen=True, kw_only=True)
class HookCommandOptions:
    """The options of the command, by name."""

    database: str = ""
    config: Path | None = None
    workspace: str = DEFAULT_WORKSPACE
    url: str = ""
    key: str = ""
    reads: str = ""
    pass_reads: bool = False
    wait: str = "9m"
    undecided: str = "deny"
    lease: str = "10m"
    agent: str = "claude-code"
    notes: Path = Path("~/.cache/interlock/hooks")
    insecure: bool = False


def parse_options(words: Sequence[str]) -> HookCommandOptions | None:
    """Parse options in their usual form. None: Typer has to parse them, and report errors."""
    options = {f"--{each.name.replace('_', '-')}": each for each in fields(HookCommandOptions)}
    given: dict[str, object] = {}
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is None or not word.isprintable():
            return None
        if option.type == "bool":
            given[option.name] = True
        else:
            value = value if equals else next(left, "--")
            given[option.name] = Path(value) if "Path" in str(option.type) else value
        if (option.type == "bool" and equals) or value.startswith("--") or not value.isprintable():
            return None
    return HookCommandOptions(**given)  # type: ignore[arg-type]  # values match the types of the fields


def run_without_parser(words: Sequence[str]) -> int | None:
    """Run the hook; returns the exit status, or None if Typer has to parse the arguments."""
    command_options = parse_options(words)
    return None if command_options is None else asyncio.run(answer_event(command_options))


async def answer_event(command_options: HookCommandOptions) -> int:
    """Answer the event: exit 0 with the answer as JSON; else 2, with the reason on standard error as well."""
    name = ""
    answer_on_signal()
    try:
        event = _parse_event(_read_stdin())
        name = event.name
        _answer_on_signal(name)
        command_options = _with_environment(command_options)
        hook_options = _make_hook_options(command_options)
        async with asyncio.timeout(hook_options.wait + GRACE), _open_hook(command_options, hook_options) as hook:
            await _print_answer(hook, event, await hook.answer(event))
    except Exception as error:  # noqa: BLE001  a hook that ends in any other way lets the call through
        ignore_signals()
        return _print_denial(name, error)
    return 0


def _answer_on_signal(name: str) -> None:
    """Set the answer on a signal, in the format of the event."""
    if name in AFTER:
        answer_on_signal("", f"{NO_RECORD} The hook was terminated first.\n", EXIT_NOT_RECORDED)
    else:
        answer_on_signal(json.dumps(answer_json(name, HookAnswer("deny", INTERRUPTED_MESSAGE))) + "\n")


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise InvalidRequest("The event is missing on standard input.")
    return sys.stdin.buffer.read(MAX_EVENT + 1)


def _parse_event(data: bytes) -> HookEvent:
    """Parse the event. Input of a tool has the gate's size limit; its result may be larger."""
    if len(data) > MAX_EVENT:
        raise InvalidRequest("The event is too large.")
    with suppress(ValueError):
        event = json.loads(data)
        if isinstance(event, Mapping) and event.get("hook_event_name") in AFTER:
            return parse_event(event)
    return parse_event(parse_json(data))


def _with_environment(command_options: HookCommandOptions) -> HookCommandOptions:
    """Add server and key from the environment; without options, a server takes precedence over a database."""
    if command_options.database and not command_options.url:
        return command_options
    from interlock.config.load import agent_key, server_url

    return replace(command_options, url=command_options.url or server_url(), key=command_options.key or agent_key())


def _make_hook_options(command_options: HookCommandOptions) -> HookOptions:
    if command_options.undecided not in UNDECIDED:
        raise InvalidRequest(f"--undecided must be one of {', '.join(UNDECIDED)}.")
    return HookOptions(
        parse_reads(command_options.reads),
        parse_duration(command_options.wait) / 1000,
        command_options.undecided,
        command_options.pass_reads,
    )


@asynccontextmanager
async def _open_hook(command_options: HookCommandOptions, hook_options: HookOptions) -> AsyncIterator[Hook]:
    lease = parse_duration(command_options.lease)
    if not 0 < lease <= MAX_LEASE:
        raise InvalidRequest("--lease must be more than 0s and at most 1h.")
    identity = HookIdentity(command_options.workspace, os_user(), (command_options.agent,))
    notes = FileNotes(command_options.notes)
    async with (
        _open_server(command_options, lease) if command_options.url else _open_database(command_options, lease) as (
            backend,
            link,
        )
    ):
        yield Hook(backend, notes, identity, replace(hook_options, approval_link_template=link))


@asynccontextmanager
async def _open_database(command_options: HookCommandOptions, lease: int) -> AsyncIterator[tuple[HookBackend, str]]:
    """The database backend, and the link to an approval.

    A missing database is refused: a new one would hide the call from reviewers, who look in another one.
    """
    url, configured = command_options.database, None
    if not url or is_relative_database_url(url):
        from interlock.cli.user_folder import trusted_database, trusted_settings

        if command_options.config is not None and not command_options.config.is_absolute():
            raise Misconfigured(
                f"{command_options.config} depends on the working folder. Give an absolute path: --config /folder/FILE."
            )
        settings = trusted_settings(command_options.config, url)
        configured = None if url else _own_policy(command_options, settings)
        url = trusted_database(settings)
    gone = missing_database_file(url)
    if gone is not None:
        make = f"interlock migrate {database_option(url)}"
        raise Misconfigured(f"There is no database at {gone}. Give the right one, or create it: {make}")
    backend = LocalBackend(url, command_options.workspace, command_options.agent, lease, configured)
    await backend.open()
    try:
        yield backend, approval_link(url, command_options.workspace)
    finally:
        await backend.close()


def _own_policy(command_options: HookCommandOptions, settings: Settings) -> ConfiguredPolicy | None:
    """The policy of the configuration, which applies to the default workspace only."""
    if settings.policy is None or command_options.workspace != DEFAULT_WORKSPACE:
        return None
    from interlock.policy.file import read_configured_policy

    return read_configured_policy(settings)


@asynccontextmanager
async def _open_server(command_options: HookCommandOptions, lease: int) -> AsyncIterator[tuple[HookBackend, str]]:
    from interlock.runtime.offload import LoopThread
    from interlock.sdk.backend import ProgramIdentity
    from interlock.sdk.interlock import BackendOptions, make_backend

    program = ProgramIdentity(command_options.workspace, command_options.agent, os_user(), "hook", lease)
    backend = make_backend(
        command_options.url,
        program,
        BackendOptions(key=command_options.key or None, insecure=command_options.insecure),
    )
    loop_thread = LoopThread()
    try:
        await backend.open(loop_thread)
        yield backend, approval_link(command_options.url)
    finally:
        await backend.close()
        loop_thread.close()


async def _print_answer(hook: Hook, event: HookEvent, answer: HookAnswer) -> None:
    """Print the answer; if that fails, record that the started call did not run."""
    ignore_signals()
    try:
        _print_json(answer_json(event.name, answer))
    except OSError:
        if answer.args is not None:
            await hook.withdraw(event, answer.args)
        raise


def _print_denial(name: str, error: Exception) -> int:
    match error:
        case Error():
            reason = error.message
        case TimeoutError():
            reason = "The gate did not answer in time."
        case _:
            reason = f"The hook failed: {type(error).__name__}."
    if name in AFTER:
        _print_error(f"{NO_RECORD} {reason}")
        return EXIT_NOT_RECORDED
    words = f"Interlock blocked this call. {reason}"
    with suppress(OSError):
        _print_json(answer_json(name or "PreToolUse", HookAnswer("deny", words)))
    _print_error(words)
    return BLOCKED_EXIT_STATUS


def _print_json(document: Mapping[str, object]) -> None:
    """Print JSON; raises OSError if the output is closed."""
    _write(sys.stdout, json.dumps(document) + "\n")


def _print_error(words: str) -> None:
    with suppress(OSError):
        _write(sys.stderr, f"{words}\n")


def _write(stream: TextIO | None, text: str) -> None:
    """Write and flush.

    After an error the stream is redirected: the interpreter would flush again at exit and change the exit status.
    """
    if stream is None:
        raise OSError("The stream is closed.")
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


RUNNER = "hook"  # not a process, since the hook has ended while the tool runs: only the lease shows that it is alive


class LocalBackend:
    def __init__(
        self, url: str, workspace: str, agent: str, lease: int, configured: ConfiguredPolicy | None = None
    ) -> None:
        self._store = SqlStore(make_database(url))
        self._gate: Gate = build_gate(self._store, Policy()).for_external()
        self._workspace = workspace
        self._agent = agent
        self._lease = lease
        self._configured_policy = configured

    async def open(self) -> None:
        await self._store.open()
        try:
            await self._store.backfill_statements()
            await self._load_policy()
            self._gate.in_force.reload = self._load_policy
            self._gate.in_force.freezes = await self._store.open_freezes(self._workspace)
        except BaseException:
            await self._store.close()
            raise

    async def close(self) -> None:
        await self._store.close()

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        return await self._gate.check(call, spec)

    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome:
        return await self._gate.wait(self._workspace, approval_id, timeout)

    async def _load_policy(self) -> None:
        epoch = await load_stored_policy(self._store, self._workspace, self._configured_policy)
        self._gate.in_force.set_policy(*epoch)

    async def start(self, approval_id: str, spec: ToolSpec | None) -> Execution:
        await self._load_policy()  # people may have taken minutes to decide
        return await self._gate.start(self._workspace, approval_id, RUNNER, self._lease, spec.sha256 if spec else "")

    async def finish(self, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> object:
        return await self._gate.finish(self._workspace, approval_id, fence, ok=ok, payload=payload)

    async def abandon(self, approval_id: str, fence: int) -> object:
        return await self._gate.abandon(self._workspace, approval_id, fence)

    async def cancel(self, approval_id: str, reason: str) -> object:
        return await self._gate.cancel(self._workspace, approval_id, f"agent:{self._agent}", reason)


MAX_NOTE = 1_000  # characters
MAX_NOTES = 10_000  # files; a call whose end was never reported leaves one behind


class FileNotes:
    def __init__(self, folder: Path) -> None:
        """Open the folder; raises Misconfigured if others could write to it."""
        self._folder = folder.expanduser()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        seen = self._folder.stat()
        if seen.st_uid != os.getuid() or seen.st_mode & 0o022:
            raise Misconfigured(f"Other users can write to {self._folder}. Give a private folder with --notes.")

    def note(self, key: str, text: str) -> None:
        """Write a note atomically, for concurrent readers."""
        path = self._folder / f"{key}.{os.getpid()}"
        path.write_text(text, encoding="utf-8")
        path.replace(self._folder / key)
        self._tidy()

    def find(self, key: str) -> str:
        try:
            return (self._folder / key).read_text(encoding="utf-8")[:MAX_NOTE]
        except FileNotFoundError:
            return ""

    def drop(self, key: str) -> None:
        (self._folder / key).unlink(missing_ok=True)

    def _tidy(self) -> None:
        """Delete the oldest notes if there are too many: their calls already count as unknown."""
        found = list(os.scandir(self._folder))
        if len(found) > MAX_NOTES:
            for each in sorted(found, key=lambda entry: entry.stat().st_mtime)[: MAX_NOTES // 2]:
                Path(each).unlink(missing_ok=True)
