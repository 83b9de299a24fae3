"""Migrations: identified by their bytes, so that an edited one is refused."""

import pytest

from interlock.storage.migrate import load_migrations

# The first 16 digits of each file, in order. A new migration adds its own; one that is there never changes.
MADE = {
    "sqlite": [
        "04866c89437c14ad",  # 0001 approvals
        "1769134b20196e76",  # 0002 search and grants
        "e787655b63dea42e",  # 0003 keys and sessions
        "d72db3a207095d41",  # 0004 chat
        "dad84d2d5645a18a",  # 0005 documents
        "c557dd230447c69e",  # 0006 channels
        "9ab3b4a2eff6c017",  # 0007 pauses
        "9fbd4139aaa8fdc0",  # 0008 call owners
        "aaa8c78b7679ad27",  # 0009 channel switches
        "f646566633f17946",  # 0010 freezes
        "98cfb398255ebd12",  # 0011 policy source
        "e0e92d122a91349c",  # 0012 bound keys
        "f5b7a00b6d7c8325",  # 0013 pins
        "7fc71982d551770f",  # 0014 key quotas
        "95fff84561c1800e",  # 0015 rejection index
        "a6b9c60c726201fd",  # 0016 immutable owners
        "ffcde0779f7fad7d",  # 0017 owner terms
        "0b72b756eae62ac5",  # 0018 preview versions
        "3342b72dd3bc26f6",  # 0019 agent index
        "afd1bed3ab5633e6",  # 0020 rollback triggers
    ],
    "postgres": [
        "5a591e8f3eb0fa6c",  # 0001 approvals
        "a70705fc83d89c80",  # 0002 search and grants
        "87fbdc484e2c3693",  # 0003 keys and sessions
        "6bf50856ad301679",  # 0004 chat
        "77bbb3f70a05a419",  # 0005 documents
        "a3e7aaa4021e7c8a",  # 0006 channels
        "aa0efd851f00f303",  # 0007 pauses
        "cd961b20ebdc895d",  # 0008 call owners
        "de017603882c918a",  # 0009 channel switches
        "dc28cb99f0ed28c6",  # 0010 freezes
        "e381074b66372e5d",  # 0011 policy source
        "d743328396aea080",  # 0012 bound keys
        "b6de085537d4ae79",  # 0013 pins
        "44de12096a916537",  # 0014 key quotas
        "95fff84561c1800e",  # 0015 rejection index
        "0f8f2c82d4ce4fa1",  # 0016 immutable owners
        "ffcde0779f7fad7d",  # 0017 owner terms
        "0b72b756eae62ac5",  # 0018 preview versions
        "3342b72dd3bc26f6",  # 0019 agent index
        "c2178518c9d73c88",  # 0020 fewer index entries
    ],
}


@pytest.mark.parametrize("database", MADE)
def test_no_migration_was_edited_after_it_made_databases(database: str) -> None:
    found = [each.sha256[:16] for each in load_migrations(database)]
    assert found == MADE[database]
