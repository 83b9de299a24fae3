"""One peer, measured in a process of its own, which prints one line of JSON: `python -m benchmarks.peer_process`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sqlite3
import statistics
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.peers import CALLS, Peer, PeerDatabase, Tool, Turns, UnaskedGates, UnfitPeer

WARM = 5
ROUNDS = 60  # of runs in each way, of which none asks
RESUMED_TWICE = 8  # paused calls that are resumed twice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=peers.peer_names())
    parser.add_argument("database", choices=("sqlite", "postgresql", "own"))
    parser.add_argument("task", choices=("cycles", "twice", "park", "unasked"))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--url", default="")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--at-once", type=int, nargs="*", default=[1, 32])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=500, help="parked before memory is looked at")
    options = parser.parse_args()
    print(json.dumps(measure(options)), flush=True)
    os._exit(0)  # what still waits must not keep the process


def measure(options: argparse.Namespace) -> dict[str, Any]:
    try:
        return asyncio.run(TASKS[options.task](options))
    except ModuleNotFoundError as error:
        return {"error": f"not installed ({error.name or error})"}
    except UnfitPeer as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001  a peer may fail in any way, and its line says in which
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}


async def measure_cycles(options: argparse.Namespace) -> dict[str, Any]:
    """Cycles per second and the times from decision to tool, for each number at once."""
    peer, tool, durable = await open_peer(options)
    figures: dict[str, Any] = {"durable": durable, "versions": versions(options.peer)}
    for at_once in options.at_once:
        figures[str(at_once)] = await measure_speed(peer, tool, at_once, options.seconds)
    await peer.close()
    return figures


async def measure_speed(peer: Peer, tool: Tool, at_once: int, seconds: float) -> dict[str, Any]:
    latencies: list[float] = []
    start_time = time.perf_counter()

    async def agent(number: int) -> None:
        turn = 0
        while time.perf_counter() - start_time < seconds:
            await cycle(peer, tool, f"{at_once}.{number}.{turn}", latencies)
            turn += 1

    await asyncio.gather(*(agent(number) for number in range(at_once)))
    spent = time.perf_counter() - start_time
    assert all(runs == 1 for runs in tool.runs.values())
    p50, p99 = (percentile(latencies, share) * 1000 for share in (0.5, 0.99))
    return {"cycles_per_second": len(latencies) / spent, "p50_ms": p50, "p99_ms": p99}


async def cycle(peer: Peer, tool: Tool, key: str, latencies: list[float]) -> None:
    paused = await peer.propose(key)
    start_time = time.perf_counter()
    await peer.decide(key, paused)
    latencies.append(tool.at.pop(key) - start_time)


async def resume_twice(options: argparse.Namespace) -> dict[str, Any]:
    """How often the tool ran at most, when the same pause was resumed again afterwards, and twice at once."""
    peer, tool, _ = await open_peer(options)
    runs = {
        "afterwards": max([await resume(peer, tool, f"afterwards{n}", (1, 1)) for n in range(RESUMED_TWICE)]),
        "at_once": max([await resume(peer, tool, f"at_once{n}", (2,)) for n in range(RESUMED_TWICE)]),
    }
    await peer.close()
    return runs


async def resume(peer: Peer, tool: Tool, key: str, turns: tuple[int, ...]) -> int:
    """How often the tool ran; a refusal is what one hopes for."""
    paused = await peer.propose(key)
    for at_once in turns:
        await asyncio.gather(*(peer.decide(key, paused) for _ in range(at_once)), return_exceptions=True)
    return tool.runs[key]


async def park_calls(options: argparse.Namespace) -> dict[str, Any]:
    """What calls that wait cost in memory, and how long it takes to list all of them."""
    peer, tool, _ = await open_peer(options)
    await measure_speed(peer, tool, 32, 1.0)
    deadline = time.perf_counter() + options.seconds
    first = await parked_latencies(peer, range(options.first), deadline)  # caches fill up to their bounds
    before = resident_memory()
    count = await parked_latencies(peer, range(options.first, options.first + options.count), deadline)
    figures = {"first": first, "parked": count, "kib_each": (resident_memory() - before) / max(count, 1)}
    began = time.perf_counter()
    figures["listed"] = await peer.listed()
    figures["list_seconds"] = time.perf_counter() - began
    return figures  # nothing is closed, since some would wait for all that is parked


async def parked_latencies(peer: Peer, numbers: Iterable[int], deadline: float) -> int:
    """Parks this many calls; each is decided later by its key alone."""
    left, count = iter(numbers), 0

    async def agent() -> None:
        nonlocal count
        for number in left:
            await peer.propose(f"parked{number}")
            count += 1
            if time.perf_counter() > deadline:
                return

    await asyncio.gather(*(agent() for _ in range(32)))
    gc.collect()
    return count


async def measure_unasked(options: argparse.Namespace) -> dict[str, Any]:
    """Processor time of a call that needs no question, in µs: bare, and what each way of asking adds to it."""
    ways: UnaskedGates = peers.load_peer(options.peer).build_unasked(options.folder)
    names, spent = ways._fields, []
    for round_ in range(ROUNDS):
        turned = (names[(number + round_) % len(names)] for number in range(len(names)))  # so that none gains by it
        spent.append({name: await cpu_seconds(getattr(ways, name)) for name in turned})
    spent = spent[WARM:]
    added = {f"{name}_us": summarize([each[name] - each["bare"] for each in spent]) for name in names[1:]}
    return {"bare_us": statistics.median(each["bare"] for each in spent), **added}


def summarize(costs: list[float]) -> list[float]:
    """The median, and where the middle half of them lies."""
    low, middle, high = statistics.quantiles(costs, n=4)
    return [middle, low, high]


async def cpu_seconds(turns: Turns) -> float:
    """µs of the processor for one of the calls."""
    start_time = time.process_time()
    await turns()
    return (time.process_time() - start_time) / CALLS * 1e6


TASKS = {"cycles": measure_cycles, "twice": resume_twice, "park": park_calls, "unasked": measure_unasked}


async def open_peer(options: argparse.Namespace) -> tuple[Any, Tool, str]:
    """Warmed up."""
    peer, tool = peers.load_peer(options.peer).Peer(), Tool()
    durable = await peer.open(PeerDatabase(options.database, options.folder, options.url), tool)
    for number in range(WARM):
        await cycle(peer, tool, f"warm{number}", [])
    return peer, tool, durable


def versions(peer: str) -> dict[str, str]:
    return {name: version(name) for name in peers.load_peer(peer).PACKAGES} | {"sqlite": sqlite3.sqlite_version}


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def resident_memory() -> float:
    """KiB of this process in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    main()
