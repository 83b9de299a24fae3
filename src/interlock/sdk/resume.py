"""Going on with runs that stood still: each as soon as it can, several at once, and one that fails stops no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from interlock.core.errors import Error, StoreUnavailable
from interlock.core.pause import Pause, retry_delay
from interlock.sdk.session import RunSession


class RunResumer:
    def __init__(
        self,
        live: RunSession,
        agent: str,
        short: Callable[[str], str],
        resume: Callable[[Pause], Awaitable[object]],
        at_once: int,
    ) -> None:
        self._live = live
        self._agent = agent
        self._short = short
        self._resume = resume
        self._at_once = max(at_once, 1)
        self._running: set[asyncio.Task[None]] = set()
        self._troubles = 0  # times that the other side could not be reached, one after the other

    async def run(self, stop: asyncio.Event) -> None:
        stopping = asyncio.ensure_future(_wait_stopped(stop))
        try:
            while not stop.is_set():
                if len(self._running) >= self._at_once:
                    await asyncio.wait({stopping, *self._running}, return_when=asyncio.FIRST_COMPLETED)
                    continue
                for pause in await self._next(stopping):
                    task = asyncio.ensure_future(self._go_on(pause))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
            await asyncio.gather(*self._running)
        finally:
            for task in (stopping, *self._running):
                task.cancel()
            await asyncio.gather(stopping, *self._running, return_exceptions=True)

    async def _next(self, stopping: asyncio.Future[None]) -> Sequence[Pause]:
        """Those that can go on; none when it is to stop, or when the other side could not be reached for a while."""
        room = self._at_once - len(self._running)
        waiting = asyncio.ensure_future(self._live.side.ready(self._agent, None, room))
        try:
            await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                return ()
            self._troubles, taken = 0, waiting.result()
            return taken
        except StoreUnavailable as error:
            self._troubles += 1
            await self._rest(error, stopping)
            return ()
        finally:
            if not waiting.done():
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    async def _rest(self, error: Error, stopping: asyncio.Future[None]) -> None:
        seconds = retry_delay(self._troubles) / 1000
        _logger().warning("Paused runs cannot be looked at (%s). Tried again in %.0f s.", error.code, seconds)
        await asyncio.wait({stopping}, timeout=seconds)

    async def _go_on(self, pause: Pause) -> None:
        side, run_id = self._live.side, self._short(pause.run_id)
        with self._live.resuming(self._agent, run_id, pause.fence):
            try:
                await self._resume(pause)
            except Exception as error:  # noqa: BLE001  whatever it is: it is this run's, and the others go on
                await self._failed(pause, error)
                return
            except BaseException:
                with suppress(Error):
                    await asyncio.shield(side.let_go(self._agent, run_id, pause.fence, failed=False))
                raise
            with suppress(Error):  # then it is gone on with once more, which repeats no call
                await side.resumed(self._agent, run_id, pause.fence)

    async def _failed(self, pause: Pause, error: Exception) -> None:
        """What the error says may hold anything that the run did: only who asks for all there is to log sees it."""
        run_id, again = self._short(pause.run_id), "when its lease ends"
        with suppress(Error):
            seconds = await self._live.side.let_go(self._agent, run_id, pause.fence, failed=True)
            again = f"in {seconds:.0f} s"
        kind = type(error).__name__
        _logger().warning("The run %s did not go on: %s. It is tried again %s.", run_id, kind, again)
        _logger().debug("Where it came from:", exc_info=error)


async def _wait_stopped(stop: asyncio.Event) -> None:
    await stop.wait()


def _logger() -> logging.Logger:
    return logging.getLogger("interlock")
