"""GraphQL documents sent to Linear: valid under its schema, and under the demo's fake."""

from __future__ import annotations

import gzip
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from graphql import GraphQLSchema, build_schema, parse, validate

from interlock.chat.tools.linear import documents

FULL = Path(__file__).parents[1] / "vendor" / "linear" / "schema.full.graphql.gz"
DOCUMENTS = {
    name: text
    for name, text in vars(documents).items()
    if name.isupper() and not name.endswith("_FIELDS")  # those are parts of others
}
WRONG = {
    "a field that is not there": "{ viewer { id salary } }",
    "an argument that is not there": "{ issues(colour: red) { nodes { id } } }",
    "a variable of another type": "query ($id: Int!) { issue(id: $id) { id } }",
    "an object without fields": "{ viewer }",
    "an input that is not there": 'mutation { issueUpdate(id: "x", input: {colour: "red"}) { success } }',
    "an input that is missing": 'mutation { issueCreate(input: {title: "x"}) { success } }',
}


@pytest.fixture(scope="module")
def full() -> GraphQLSchema:
    return build_schema(gzip.decompress(FULL.read_bytes()).decode(), assume_valid=True)


@pytest.fixture(scope="module")
def part() -> GraphQLSchema:
    packed = files("interlock.demo.linear").joinpath("schema.graphql.gz").read_bytes()
    return build_schema(gzip.decompress(packed).decode(), assume_valid=True)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_fits_both_schemas(name: str, full: GraphQLSchema, part: GraphQLSchema) -> None:  # R7
    document = parse(DOCUMENTS[name])
    assert [error.message for schema in (full, part) for error in validate(schema, document)] == []


@pytest.mark.parametrize("what", WRONG)
def test_both_schemas_refuse_what_is_wrong(what: str, full: GraphQLSchema, part: GraphQLSchema) -> None:
    document = parse(WRONG[what])
    assert all(validate(schema, document) for schema in (full, part))


def test_no_document_deletes_but_the_one_that_is_named_so() -> None:  # R7
    deleting = [name for name, text in DOCUMENTS.items() if "Delete(" in text or "Archive(" in text]
    assert deleting == ["DELETE_ISSUE"]


def test_the_content_of_the_demo_needs_nothing_that_is_installed_apart() -> None:
    """A server without the extra `demo` loads it."""
    program = "import sys; sys.modules['graphql'] = None; import interlock.demo.content, interlock.demo.linear.content"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
