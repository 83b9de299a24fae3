"""The documents tool pack: indexing, search and paging of folders on both databases, and nothing outside them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from interlock.app.bootstrap import AppServices
from interlock.chat.tool import ToolContext, ToolInvocation
from interlock.chat.tools import documents as module
from interlock.chat.tools.documents import PAGE_LENGTH, FolderIndexer, ScanResult, read_tools, split_passages
from interlock.core.errors import ToolFailed
from interlock.storage.tables.tool_items import SqlDocuments
from tests.databases import Database
from tests.support import Clock, open_services
from tests.tools.mcp_harness import wait_until

HOUR = 3_600_000


@pytest.fixture
def documents(services: AppServices) -> SqlDocuments:
    return services.store.documents("default")


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    (folder / "travel").mkdir(parents=True)
    (folder / "holidays.md").write_text("# Holidays\n\nEverybody has thirty days of holiday each year.\n")
    (folder / "travel" / "trains.txt").write_text("Trains are booked by the office. Hotels are booked by yourself.\n")
    (folder / "team.csv").write_text("name,role\nAda Lovelace,engineer\n")
    return folder


@pytest.fixture
def log_lines() -> list[str]:
    return []


@pytest.fixture
def folders(handbook: Path, documents: SqlDocuments, log_lines: list[str]) -> FolderIndexer:
    return FolderIndexer([handbook], documents, log_lines.append)


class DocumentReader:
    def __init__(self, services: AppServices, documents: SqlDocuments) -> None:
        kit = ToolContext("default", services.store.tool_items("default"), documents=documents)
        self._tools = {tool.name: tool for tool in read_tools(kit)}

    async def search(self, query: str, **more: object) -> list[dict[str, object]]:
        result = await self._tools["documents_search"].run(ToolInvocation({"query": query, **more}, ""))
        assert isinstance(result, dict)
        return list(result["results"])

    async def paths(self, query: str, **more: object) -> list[object]:
        return [each["path"] for each in await self.search(query, **more)]

    async def read(self, path: str, **more: object) -> dict[str, object]:
        result = await self._tools["documents_read"].run(ToolInvocation({"path": path, **more}, ""))
        assert isinstance(result, dict)
        return result


@pytest.fixture
async def document_reader(services: AppServices, documents: SqlDocuments, folders: FolderIndexer) -> DocumentReader:
    await folders.scan()
    return DocumentReader(services, documents)


# --- searching --------------------------------------------------------------------------------------------------------


async def test_a_passage_is_found_by_its_words(document_reader: DocumentReader) -> None:  # R9
    found = await document_reader.search("How many days of holiday does everybody have?")
    assert found[0]["path"] == "handbook/holidays.md"
    assert "thirty days" in str(found[0]["text"])


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("holidays", "handbook/holidays.md"),  # as in another form of the word
        ("BOOKING hotel", "handbook/travel/trains.txt"),
        ("lovelace", "handbook/team.csv"),
        ("travel", "handbook/travel/trains.txt"),  # a word of the path
    ],
)
async def test_words_are_found_in_any_form_and_case_and_in_paths(
    document_reader: DocumentReader, query: str, path: str
) -> None:  # R9
    assert (await document_reader.paths(query))[0] == path


@pytest.mark.parametrize(
    "query", ["zebra", "", "   ", "'", '"', "* OR NEAR(", "a:b & | !", "' ; drop table documents; --", "\\", "___", "%"]
)
async def test_typed_operators_are_plain_words(document_reader: DocumentReader, query: str) -> None:
    assert await document_reader.search(query) == []


async def test_what_has_more_of_the_words_comes_first_and_each_document_once(
    document_reader: DocumentReader, handbook: Path, folders: FolderIndexer
) -> None:
    (handbook / "a.md").write_text("apple. " + "filler " * 50)
    (handbook / "b.md").write_text("apple pear. " + "filler " * 50)
    (handbook / "c.md").write_text("apple pear plum. " * 300)
    await folders.scan()
    assert await document_reader.paths("apple pear plum") == ["handbook/c.md", "handbook/b.md", "handbook/a.md"]
    assert len(await document_reader.paths("apple", limit=2)) == 2


async def test_words_that_every_text_has_count_only_where_there_are_no_others(document_reader: DocumentReader) -> None:
    assert await document_reader.paths("what is the zebra of our") == []
    found = await document_reader.search("of")
    assert [each["path"] for each in found] in ([], ["handbook/holidays.md"])  # PostgreSQL does not know it at all


async def test_the_place_that_was_found_can_be_read(
    document_reader: DocumentReader, handbook: Path, folders: FolderIndexer
) -> None:
    (handbook / "long.md").write_text(
        "\n\n".join(f"Paragraph {n} is about nothing. " * 20 for n in range(100)) + "\n\nNeedle."
    )
    await folders.scan()
    found = (await document_reader.search("needle"))[0]
    assert "Needle." in str((await document_reader.read("handbook/long.md", offset=found["offset"]))["text"])
    assert len(str(found["text"])) <= 600


# --- reading ----------------------------------------------------------------------------------------------------------


async def test_a_document_is_read_page_by_page(
    document_reader: DocumentReader, handbook: Path, folders: FolderIndexer
) -> None:  # R9
    text = "".join(f"Line {n} of a long file, with ümläuts.\n" for n in range(3_000))
    (handbook / "long.txt").write_text(text)
    await folders.scan()
    read, offset = "", 0
    while True:
        page = await document_reader.read("handbook/long.txt", offset=offset)
        assert len(str(page["text"])) <= PAGE_LENGTH
        read += str(page["text"])
        if "next_offset" not in page:
            break
        offset = int(str(page["next_offset"]))
    assert read == text
    assert (await document_reader.read("handbook/long.txt", offset=10**9))["text"] == ""


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.md", "handbook/../secret.md", "handbook", ""])
async def test_nothing_but_what_is_listed_is_read(document_reader: DocumentReader, path: str, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    with pytest.raises(ToolFailed, match="There is no document"):
        await document_reader.read(path)


async def test_documents_of_one_workspace_are_not_those_of_another(
    document_reader: DocumentReader, services: AppServices
) -> None:
    other = services.store.documents("other")
    assert await other.search(["holiday"], 10) == []
    assert await other.read("handbook/holidays.md", 0, 10) is None
    assert await other.stamps() == {}
    assert read_tools(ToolContext("other", services.store.tool_items("other"))) == ()


# --- folders ----------------------------------------------------------------------------------------------------------


async def test_only_what_changed_is_read_again(
    folders: FolderIndexer, handbook: Path, document_reader: DocumentReader, log_lines: list[str]
) -> None:
    assert log_lines == ["Documents: 3 read, 0 gone."]
    assert await folders.scan() == ScanResult()
    (handbook / "holidays.md").write_text("There are forty days.")
    (handbook / "team.csv").unlink()
    assert await folders.scan() == ScanResult(1, 1)
    assert await document_reader.paths("thirty") == []
    assert await document_reader.paths("lovelace") == []
    assert await document_reader.paths("forty") == ["handbook/holidays.md"]
    with pytest.raises(ToolFailed):
        await document_reader.read("handbook/team.csv")


async def test_links_out_of_the_folder_are_not_followed(
    folders: FolderIndexer, handbook: Path, tmp_path: Path, document_reader: DocumentReader
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("zebra")
    (handbook / "link.md").symlink_to(outside / "secret.md")
    (handbook / "folder").symlink_to(outside)
    (handbook / "inside.md").symlink_to(handbook / "holidays.md")
    (handbook / "loop.md").symlink_to(handbook / "loop.md")
    looked = await folders.scan()
    assert looked == ScanResult(1, 0, ("handbook/link.md is left out: it is a link out of the folder",))
    assert await document_reader.paths("zebra") == []
    assert "handbook/inside.md" in await document_reader.paths("holiday")


async def test_what_is_no_document_is_left_out(
    folders: FolderIndexer, handbook: Path, document_reader: DocumentReader
) -> None:
    (handbook / ".git").mkdir()
    (handbook / ".git" / "config.txt").write_text("zebra")
    (handbook / ".env.txt").write_text("zebra")
    (handbook / "picture.png").write_bytes(b"zebra")
    (handbook / "large.txt").write_text("zebra " * 200_000)
    os.mkfifo(handbook / "pipe.txt")
    (handbook / os.fsdecode(b"\xff.txt")).write_text("zebra")
    looked = await folders.scan()
    assert looked.put == 0
    assert looked.left_out == (
        "handbook/large.txt is left out: it has over 1,024 KiB",
        "handbook/pipe.txt is left out: it is no file",
    )
    assert await document_reader.paths("zebra") == []


async def test_odd_bytes_are_read_as_well_as_can_be(
    folders: FolderIndexer, handbook: Path, document_reader: DocumentReader
) -> None:
    (handbook / "odd.txt").write_bytes(b"\xff\x00zebra\xc3\xa9 " + "\U0001f600".encode() + b" " + b"x" * 50_000)
    (handbook / "page.html").write_text("<p class='lion'>A <b>tiger</b> &amp; a bear</p>")
    await folders.scan()
    assert str((await document_reader.read("handbook/odd.txt"))["text"]).startswith("\ufffdzebraé \U0001f600 xxx")
    assert await document_reader.paths("tiger") == ["handbook/page.html"]
    assert await document_reader.paths("lion") == []


async def test_a_folder_that_is_away_keeps_its_documents(
    folders: FolderIndexer, handbook: Path, document_reader: DocumentReader, log_lines: list[str]
) -> None:
    os.rename(handbook, f"{handbook}-elsewhere")
    assert (await folders.scan()).dropped == 0
    assert await document_reader.paths("lovelace") == ["handbook/team.csv"]
    await folders.scan()
    assert [line for line in log_lines if "is not there" in line] == [
        f"Documents: {handbook} is not there; what was read of it stays"
    ]


async def test_folders_of_one_name_and_single_files_stay_apart(
    handbook: Path, tmp_path: Path, documents: SqlDocuments
) -> None:
    (tmp_path / "b" / "handbook").mkdir(parents=True)
    (tmp_path / "b" / "handbook" / "holidays.md").write_text("other")
    (tmp_path / "one.md").write_text("alone")
    await FolderIndexer([handbook, tmp_path / "b" / "handbook", tmp_path / "one.md"], documents, print).scan()
    assert {"handbook/holidays.md", "handbook-2/holidays.md", "one.md"} <= set(await documents.stamps())


async def test_two_that_look_at_once_come_to_the_same(
    handbook: Path, database: Database, clock: Clock, services: AppServices, documents: SqlDocuments
) -> None:
    for number in range(20):
        (handbook / f"{number}.md").write_text(f"zebra {number} " * 2_000)
    async with open_services(database, clock) as others:
        both = [FolderIndexer([handbook], each.store.documents("default"), print) for each in (services, others)]
        await asyncio.gather(*(each.scan() for each in both))
    for number in range(20):
        excerpt = await documents.read(f"handbook/{number}.md", 0, 10**6)
        assert excerpt is not None
        assert excerpt.text == f"zebra {number} " * 2_000
    assert await both[0].scan() == ScanResult()


async def test_one_that_was_cut_off_changes_nothing_and_leaves_nothing(
    database: Database, documents: SqlDocuments, clock: Clock
) -> None:
    def kept() -> int:
        return int(database.sql("select count(*) from passages")[0][0])

    await documents.put("a.md", "1", ["old words "] * 50)
    putting = asyncio.create_task(documents.put("a.md", "2", ["new words "] * 5_000))
    await wait_until(lambda: kept() > 50)
    putting.cancel()
    await asyncio.gather(putting, return_exceptions=True)
    left = kept()
    assert 50 < left < 5_000
    assert await documents.stamps() == {"a.md": "1"}
    assert await documents.search(["new"], 10) == []
    await documents.delete_orphans()
    assert kept() >= left, "whoever writes them may still be at it"
    clock.advance(HOUR + 1)
    await documents.delete_orphans()
    assert kept() == 50
    await documents.put("a.md", "2", ["new words "] * 60)
    assert kept() == 60
    assert len(await documents.search(["new"], 100)) == 60


async def test_the_indexer_scans_until_it_is_stopped(
    handbook: Path,
    folders: FolderIndexer,
    documents: SqlDocuments,
    log_lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SCAN_SECONDS", 0.01)
    stop = asyncio.Event()
    running = asyncio.create_task(folders.run(stop))
    await wait_until(lambda: "Documents: 3 read, 0 gone." in log_lines)
    (handbook / "new.md").write_text("new")
    await wait_until(lambda: "Documents: 1 read, 0 gone." in log_lines)
    stop.set()
    await running
    assert set(await documents.stamps()) >= {"handbook/new.md"}


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 5_000, "word " * 2_000, "line\n" * 2_000, "paragraph " * 30 + "\n\n", "a\n\n" * 3_000]
)
def test_passages_make_up_the_text(text: str) -> None:
    pieces = split_passages(text)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= 1_500 for piece in pieces)
