"""Makes a PostgreSQL read-only while programs work on it, and writable again. Run as a program of its own:

    python -m tests.faults.read_only [--how setting|failover] [--times N] [--broken fail-open]

`setting` is what operators do before a move; `failover` is a primary that dies, whose standby takes over after a while
in which it can only be read. Meanwhile nothing may run that is not recorded, and looking has to work; afterwards the
programs go on by themselves, and all that they were told is there. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.databases import migrated_template
from tests.faults.cuts import SOCKET, CuttingProxy
from tests.faults.load_runner import LoadPrograms, check_load, run_load
from tests.postgres import Server

SHORT = ("--patience", "0.3")
STANDBY_NAME = "taker"  # as which a standby is known to its primary


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=["setting", "failover"], default="setting")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--programs", type=int, default=2)
    parser.add_argument("--broken", default="")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = {"setting": by_setting, "failover": by_failover}[options.how](Path(folder), options)
    named = {"suite": f"read-only by {options.how}", "database": "postgresql", "faults": options.times}
    print(json.dumps({**named, **result, "seconds": round(time.monotonic() - began, 1)}))


def extra_options(options: argparse.Namespace) -> list[str]:
    return [*SHORT, *(["--broken", options.broken] if options.broken else [])]


def by_setting(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    with Server(durable=False) as server:
        url = server.create_database("readonly", migrated_template(server))
        with run_load(url, folder, options.programs, *extra_options(options)) as made:
            for _ in range(options.times):
                made.wait_for_lines(what="succeeded")
                set_read_only(server, "on")
                made.wait_for_lines(10, "error ")
                set_read_only(server, "off")
            made.wait_for_lines(what="succeeded")
        set_read_only(server, "off")
        return check_load(url, made, ["store_unavailable"])


def set_read_only(server: Server, read_only: str) -> None:
    with server.connect() as connection:
        connection.execute("set default_transaction_read_only = off")
        connection.execute(f"alter system set default_transaction_read_only = {read_only}".encode())
        connection.execute("select pg_reload_conf()")


def by_failover(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Each standby has to have what its primary tells to have done, and becomes the primary of the next one."""
    with ExitStack() as stack:
        server = stack.enter_context(Server(durable=False))
        server.create_database("readonly", migrated_template(server))
        wire = stack.enter_context(CuttingProxy(folder, server.sockets / SOCKET, random.Random(0), 0))
        url = f"postgresql://postgres@/readonly?host={quote(str(folder), safe='')}"
        with run_load(url, folder, options.programs, *extra_options(options)) as made:
            for _ in range(options.times):
                made.wait_for_lines(what="succeeded")
                server = fail_over(server, stack.enter_context(start_standby(server)), wire, made)
            made.wait_for_lines(what="succeeded")
        return check_load(server.url("readonly"), made, ["store_unavailable", "unread"])


def start_standby(server: Server) -> Server:
    return Server(durable=False, standby_of=server, settings={"cluster_name": STANDBY_NAME})


def fail_over(primary: Server, standby: Server, wire: CuttingProxy, made: LoadPrograms) -> Server:
    with primary.connect() as connection:
        connection.execute(f"alter system set synchronous_standby_names = '{STANDBY_NAME}'".encode())
        connection.execute("select pg_reload_conf()")
        wait_until_replicated(connection)
    made.wait_for_lines(what="succeeded")
    primary.stop("immediate")
    wire.server = standby.sockets / SOCKET
    wire.end()
    made.wait_for_lines(10, "is read-only")
    with standby.connect() as connection:
        connection.execute("alter system reset synchronous_standby_names")
        connection.execute("select pg_promote(), pg_reload_conf()")
    return standby


def wait_until_replicated(connection: Any) -> None:
    deadline = time.monotonic() + 60
    while connection.execute("select from pg_stat_replication where sync_state = 'sync'").fetchone() is None:
        if time.monotonic() > deadline:
            raise RuntimeError("the standby does not follow")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
