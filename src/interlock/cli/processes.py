"""Reads a long ledger in parts, the first here and each other in a process of its own."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any

from interlock.app.audit import Progress, verify_part
from interlock.app.bootstrap import wire
from interlock.core.errors import Error
from interlock.core.ledger import Head, Verifier
from interlock.core.ports import Store

LEAST = 100_000  # entries for which a process is worth its start
LOOK_EVERY = 0.1  # seconds between two looks at the progress


@dataclass(frozen=True, slots=True)
class Part:
    url: str
    workspace: str
    after: int
    until: int
    head: Head | None


class Processes:
    """The Parts of `audit.verify`. Without a number of jobs, as many as processors, and none for a short ledger."""

    def __init__(self, store: Store, url: str, jobs: int) -> None:
        self._store = store
        self._url = url
        self._jobs = jobs

    async def __call__(
        self, workspace: str, end: int, head: Head | None, progress: Progress
    ) -> AsyncGenerator[Verifier | None, None]:
        count = min(self._jobs, end) or min(_processors(), end // LEAST)
        if count < 2:
            return
        edges = [end * number // count for number in range(count + 1)]
        helpers = [Helper(Part(self._url, workspace, after, until, head)) for after, until in pairwise(edges[1:])]

        def told(done: int, _: int) -> None:
            progress(done + sum(helper.done for helper in helpers), end)

        try:
            yield await verify_part(self._store, workspace, 0, edges[1], head, told)
            for helper in helpers:
                while not await asyncio.to_thread(helper.ready, LOOK_EVERY):
                    told(edges[1], end)
                yield await asyncio.to_thread(helper.result)
        finally:
            for helper in helpers:
                helper.stop()


class Helper:
    """A fresh process, not a fork of this one, which has threads and open connections."""

    def __init__(self, part: Part) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe(duplex=False)
        self._done = context.Value("q", 0, lock=False)
        self._process = context.Process(target=_work, args=(part, there, self._done), daemon=True)
        self._process.start()
        there.close()

    @property
    def done(self) -> int:
        return int(self._done.value)

    def ready(self, timeout: float) -> bool:
        return self._here.poll(timeout)

    def result(self) -> Verifier | None:
        """None if the process came to grief: then the ledger is read without it."""
        try:
            verifier: Verifier | None = self._here.recv()
        except EOFError:
            return None
        return verifier

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()
        self._here.close()


def _work(part: Part, there: Connection, done: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who waits for this process ends it
    try:
        verifier = asyncio.run(_verified(part, done))
    except (Error, OSError):
        verifier = None
    with suppress(OSError):  # nobody waits any more
        there.send(verifier)


async def _verified(part: Part, done: Any) -> Verifier | None:
    def progress(count: int, _: int) -> None:
        done.value = count

    store = wire(part.url).store
    await store.open()
    try:
        return await verify_part(store, part.workspace, part.after, part.until, part.head, progress)
    finally:
        await store.close()


def _processors() -> int:
    """Those that this process may use, where the system says so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
