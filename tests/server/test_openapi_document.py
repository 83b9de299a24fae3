"""The OpenAPI document says what the server does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from interlock.server.models import ApprovalJson
from interlock.server.openapi.document import FIELD_DESCRIPTIONS, Document, body_models, operations
from interlock.server.openapi.reference import render_markdown
from tests.databases import SqliteFile
from tests.server.conftest import ClientFactory
from tests.server.test_calls import propose


@pytest.fixture
def database(tmp_path: Path) -> SqliteFile:
    """One kind of database is enough: the document is in none."""
    return SqliteFile(tmp_path / "interlock.db")


def fits(document: Document, schema: dict[str, Any], value: object) -> bool:
    return jsonschema_rs.is_valid({**schema, "components": document["components"]}, value)


async def test_every_route_says_what_it_does_who_may_and_how_it_fails(document: Document) -> None:
    assert document["openapi"] == "3.1.0"
    bare = [
        f"{method} {path}"
        for method, path, operation in operations(document)
        if not (operation["summary"] and operation["tags"] and "default" in operation["responses"])
    ]
    assert bare == []
    open_to_all = {path for _, path, operation in operations(document) if "x-roles" not in operation}
    assert open_to_all <= {
        *("/healthz", "/readyz", "/api/session", "/api/session/link", "/api/session/link/inspect"),
        *("/api/links/inspect", "/api/links/code", "/api/links/session"),
        *("/auth/oidc", "/auth/oidc/callback", "/channels/{name}/callback", "/agent-inbox/info"),
        "/channels/{workspace}/{name}/callback",
    }


async def test_every_body_has_an_example_that_fits(document: Document) -> None:
    for method, path, operation in operations(document):
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            assert "example" in content, f"{method} {path}: give the model of its body an example"
            if kind == "application/json":
                assert fits(document, content["schema"], content["example"]), f"{method} {path}"


async def test_every_description_of_a_field_is_used(document: Document) -> None:
    used = set()
    for model, schema in document["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            used |= {(name, field.get("description")), (f"{model}.{name}", field.get("description"))}
    assert [key for key, text in FIELD_DESCRIPTIONS.items() if (key, text) not in used] == []


async def test_every_answer_has_a_shape(document: Document) -> None:
    shapeless = [
        f"{method} {path}"
        for method, path, operation in operations(document)
        for status, answer in operation["responses"].items()
        if status.startswith("2") and status != "204"
        if not any(each["schema"] for each in answer.get("content", {}).values())
    ]
    assert shapeless == []


async def test_every_post_takes_an_idempotency_key_and_names_are_unique(document: Document) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    posts = [operation for method, _, operation in operations(document) if method == "POST"]
    assert posts
    assert all("Idempotency-Key" in str(operation["parameters"]) for operation in posts)
    assert {"ProposalBody", "DecisionBody"} <= {name for post in posts for name in body_models(post)}


async def test_the_document_needs_no_key_and_holds_the_security_schemes(document: Document) -> None:
    assert document["components"]["securitySchemes"].keys() == {"key", "session"}
    assert "HTTPValidationError" not in str(document)


async def test_what_is_answered_is_what_the_document_says(
    client: ClientFactory, keys: dict[str, str], document: Document
) -> None:
    told = await propose(client(keys["agent"]))
    schema = {"$ref": "#/components/schemas/OutcomeJson"}
    assert fits(document, schema, told)
    shown = (await client(keys["viewer"]).get(f"/api/approvals/{told['approval_id']}")).json()
    assert fits(document, {"$ref": "#/components/schemas/ApprovalJson"}, shown)
    assert set(shown) == {field.alias or name for name, field in ApprovalJson.model_fields.items()}


async def test_the_page_is_plain_and_has_every_route(client: ClientFactory, document: Document) -> None:
    page = await client().get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self';")
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert "://" not in page.text.replace("http://127.0.0.1:8321", "").replace("https://", "", 0)
    assert [path for _, path, _ in operations(document) if f"<code>{path}</code>" not in page.text] == []
    assert 'name="viewport"' in page.text
    style = await client().get("/docs.css")
    assert "color-scheme: light dark" in style.text


async def test_the_handbook_is_up_to_date(document: Document) -> None:
    stored = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
    assert render_markdown(document) == stored, "run: python -m interlock.server.openapi.reference > docs/http.md"
