"""`interlock serve` and `interlock worker`: the long-running processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from interlock.app.bootstrap import AppServices, build_gate_and_inbox, build_services, wall_clock
from interlock.cli.context import CommandOptions
from interlock.cli.output import say
from interlock.notify.workspace_channels import policy_load_options
from interlock.presenters.text import pluralize
from interlock.server.lifecycle import background_jobs, capture_library_logs, on_signal
from interlock.server.logs import JsonLogger

if TYPE_CHECKING:
    from interlock.chat.assistant import BackgroundTask, DemoSetup
    from interlock.config.models import Settings


async def run_server(
    options: CommandOptions, host: str, port: int | None, *, worker: bool, demo: bool, migrate: bool
) -> None:
    from interlock.server.serve import serve

    settings = options.settings(server_host=host or None, server_port=port).with_trusted_code()
    if migrate:
        await _migrate(settings)
    await serve(settings, say, worker=worker, demo=_load_demo() if demo else None)


async def _migrate(settings: Settings) -> None:
    """Apply missing migrations; servers that start together take turns, and the later ones have nothing to do."""
    store = build_services(settings.storage.url).store
    try:
        done = await store.migrate()
    finally:
        await store.close()
    if done:
        say(f"{store.name}: applied {pluralize(len(done), 'migration', 'migrations')}: {', '.join(done)}.")


async def run_worker(options: CommandOptions, *, demo: bool) -> None:
    """Run a worker. Any number may run, with or without servers."""
    settings = options.settings().with_trusted_code()
    log = JsonLogger(wall_clock, settings.server.log)
    app_services = build_services(settings.storage.url, retention=settings.storage.retention)
    await app_services.store.open()
    await app_services.store.backfill_statements()
    stop = asyncio.Event()
    capture_library_logs(log)
    try:
        with on_signal(stop.set):
            async with (
                _background_tasks(settings, app_services, log, _load_demo() if demo else None) as tasks,
                background_jobs(log, app_services.worker.run, *tasks),
            ):
                say(f"Interlock's worker is running on {app_services.store.name}.")
                log.write("info", "start", database=app_services.store.name)
                await stop.wait()
                log.write("info", "stopping")
    finally:
        await app_services.store.close()
    log.write("info", "stopped")


@asynccontextmanager
async def _background_tasks(
    settings: Settings, app_services: AppServices, log: JsonLogger, demo: DemoSetup | None
) -> AsyncIterator[list[BackgroundTask]]:
    """Background tasks that advance chat threads and send notifications, under the policy in force at each moment."""
    from interlock.app.workspaces import Workspaces
    from interlock.chat.assistant import build_assistant
    from interlock.notify.service import build_notification_service
    from interlock.policy.file import read_configured_policy
    from interlock.server.serve import log_stale_policy

    configured = read_configured_policy(settings)
    toggles, reaching = settings.toggles(), partial(policy_load_options, settings)
    workspaces = Workspaces(
        app_services.store,
        partial(build_gate_and_inbox, app_services.store),
        toggles,
        reaching,
        configured,
        partial(log_stale_policy, log),
    )
    assistant = build_assistant(settings, app_services.store, workspaces, log, demo=demo)
    notifications = build_notification_service(settings, app_services.store, workspaces, log)
    poll_task = asyncio.create_task(workspaces.poll_changes())
    try:
        async with assistant.open(), notifications.open():
            yield [*assistant.background_tasks, *notifications.background_tasks]
    finally:
        poll_task.cancel()


def _load_demo() -> DemoSetup:
    from interlock.demo.workspace import DEMO

    return DEMO
