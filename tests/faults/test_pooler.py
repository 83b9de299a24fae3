"""What a pooler in transaction mode does to a connection: the store must not rely on any of this."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.pooler import Pooler
from tests.postgres import Server


def test_both_addresses_lead_to_the_same_database(postgres_url: str, pooled_url: str) -> None:
    with psycopg.connect(pooled_url) as pooled:
        pooled.execute("create table t as select 7 as n")
    with psycopg.connect(postgres_url) as direct:
        assert direct.execute("select n from t").fetchone() == (7,)


def test_a_connection_belongs_to_a_client_for_one_transaction_only(pooled_url: str) -> None:
    with psycopg.connect(pooled_url, autocommit=True) as ann, psycopg.connect(pooled_url, autocommit=True) as bob:
        free = [backend(ann), backend(bob)]
        ann.execute("begin")
        bob.execute("begin")
        busy = [backend(ann), backend(bob)]
    assert free[0] == free[1]
    assert busy[0] != busy[1]


def test_a_session_setting_leaks_to_other_clients(pooled_url: str) -> None:
    with psycopg.connect(pooled_url, autocommit=True) as ann, psycopg.connect(pooled_url, autocommit=True) as bob:
        ann.execute("set statement_timeout = '77s'")
        assert bob.execute("show statement_timeout").fetchone() == ("77s",)


def test_a_session_lock_excludes_nobody(pooled_url: str) -> None:
    with psycopg.connect(pooled_url, autocommit=True) as ann, psycopg.connect(pooled_url, autocommit=True) as bob:
        assert [each.execute("select pg_try_advisory_lock(1)").fetchone() for each in (ann, bob)] == [(True,), (True,)]


def test_a_lock_of_a_transaction_holds(pooled_url: str) -> None:
    with psycopg.connect(pooled_url) as ann, psycopg.connect(pooled_url) as bob:
        got = [each.execute("select pg_try_advisory_xact_lock(1)").fetchone() for each in (ann, bob)]
    assert got == [(True,), (False,)]


def test_a_listener_behind_the_pooler_hears_nothing_and_a_direct_one_hears_all(
    postgres_url: str, pooled_url: str
) -> None:
    with (
        psycopg.connect(pooled_url, autocommit=True) as deaf,
        psycopg.connect(postgres_url, autocommit=True) as direct,
        psycopg.connect(pooled_url, autocommit=True) as sender,
    ):
        deaf.execute("listen news")
        direct.execute("listen news")
        sender.execute("notify news, 'come'")
        assert [note.payload for note in direct.notifies(timeout=10, stop_after=1)] == ["come"]
        assert list(deaf.notifies(timeout=0.1)) == []


def test_a_client_can_tell_that_there_is_a_pooler(postgres_url: str, pooled_url: str) -> None:
    """The backend pid at connection time is not that of the process that answers later."""
    answers = {}
    for url in (postgres_url, pooled_url):
        with psycopg.connect(url) as connection:
            answers[url] = connection.info.backend_pid == backend(connection)
    assert answers == {postgres_url: True, pooled_url: False}


@pytest.mark.usefixtures("postgres_pooler")  # skips where there is no pgbouncer
def test_a_pooler_that_restarts_cuts_connections_and_takes_new_ones(postgres_server: Server) -> None:
    with Pooler(postgres_server) as pooler:
        connection = psycopg.connect(pooler.url())
        pooler.stop()
        with connection, pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
        pooler.start()
        with psycopg.connect(pooler.url()) as again:
            assert again.execute("select 1").fetchone() == (1,)


def backend(connection: psycopg.Connection[tuple[Any, ...]]) -> int:
    row = connection.execute("select pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])
