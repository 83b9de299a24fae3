"""The fake Linear as an HTTP transport: requests to Linear are answered in this process."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

import httpx2
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    OperationType,
    assert_scalar_type,
    build_schema,
    execute_sync,
    get_operation_ast,
    parse,
    validate,
)

from interlock.core.ports import ToolItemStore, ToolItemTransaction
from interlock.demo.linear.content import KINDS
from interlock.demo.linear.resolvers import ItemSnapshot, resolve_field

PERSONAL_KEY_PREFIX = "lin_api_"
MOST_BYTES = 1024 * 1024
Resolver = Callable[..., Any]


class FakeLinear(httpx2.AsyncBaseTransport):
    """Stores its data in `items`, in kinds that begin with `linear_`, where it can be counted from outside."""

    def __init__(
        self, items: ToolItemStore, schema: GraphQLSchema | None = None, resolver: Resolver | None = None
    ) -> None:
        """`schema` replaces the included part of Linear's, and `resolver` the resolvers."""
        self._items = items
        self._given = schema
        self._resolver = resolver or resolve_field

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        status, answer = await self.answer(request.method, request.headers.get("authorization", ""), body)
        return httpx2.Response(status, json=answer, request=request)

    async def answer(self, method: str, authorization: str, body: bytes) -> tuple[int, Mapping[str, object]]:
        """Return the status and the JSON that Linear would return."""
        if method != "POST":
            return _error_response(405, _error("Linear takes POST.", "INPUT_ERROR"))
        if refusal := _authentication_error(authorization):
            return refusal
        asked = _parse_body(body)
        if asked is None:
            return _error_response(400, _error("The body is no GraphQL request.", "BAD_REQUEST"))
        return await self._execute(*asked)

    async def _execute(self, text: str, variables: Mapping[str, Any]) -> tuple[int, Mapping[str, object]]:
        """Seen: an invalid document is refused with 400; an error during execution comes with 200."""
        try:
            document = parse(text)
        except GraphQLError as error:
            return _error_response(400, _error(error.message, "GRAPHQL_PARSE_FAILED"))
        if errors := validate(self._schema, document):
            return _error_response(400, *(_error(error.message, "GRAPHQL_VALIDATION_FAILED") for error in errors))
        operation = get_operation_ast(document)
        if operation is None:
            return _error_response(400, _error("Say which operation is meant.", "GRAPHQL_VALIDATION_FAILED"))
        if operation.operation is OperationType.MUTATION:
            return await self._mutate(document, variables)
        shelf = ItemSnapshot({kind: await self._items.list(kind) for kind in KINDS})
        return _result_response(self._run(document, variables, shelf))

    async def _mutate(self, document: DocumentNode, variables: Mapping[str, Any]) -> tuple[int, Mapping[str, object]]:
        """Run a mutation in one transaction. That several mutations in one document are atomic is assumed."""

        def step(transaction: ToolItemTransaction) -> object:
            result = self._run(document, variables, transaction)
            if result.errors:
                raise _RolledBack(result)
            return result.data

        try:
            return 200, {"data": await self._items.change("", step)}
        except _RolledBack as failed:
            return _result_response(failed.result)

    @property
    def _schema(self) -> GraphQLSchema:
        return self._given or _load_schema()

    def _run(
        self, document: DocumentNode, variables: Mapping[str, Any], transaction: ToolItemTransaction
    ) -> ExecutionResult:
        return execute_sync(
            self._schema,
            document,
            context_value=transaction,
            variable_values=dict(variables),
            field_resolver=self._resolver,
        )


class _RolledBack(Exception):
    """Carries a response with errors out of a transaction, which it rolls back."""

    def __init__(self, result: ExecutionResult) -> None:
        super().__init__("The mutation failed.")
        self.result = result


@lru_cache(maxsize=1)
def _load_schema() -> GraphQLSchema:
    """Load the schema once: it takes 80 ms."""
    packed = files(__package__).joinpath("schema.graphql.gz").read_bytes()
    schema = build_schema(gzip.decompress(packed).decode(), assume_valid=True)
    times = assert_scalar_type(schema.get_type("DateTime"))
    times.coerce_input_value = _check_time
    return schema


def _check_time(value: object) -> str:
    """Documented: times are ISO 8601."""
    try:
        datetime.fromisoformat(str(value))
    except ValueError:
        raise GraphQLError(f"Value is not a valid DateTime: {value!r}") from None
    return str(value)


def _authentication_error(authorization: str) -> tuple[int, Mapping[str, object]] | None:
    """Documented: personal keys are sent bare, tokens after `Bearer`. Seen: the errors for no key, and for a mix-up."""
    if not authorization.strip():
        words = "You need to authenticate to access this operation."
        return _error_response(401, _error("Authentication required, not authenticated", "AUTHENTICATION_ERROR", words))
    if authorization.startswith(f"Bearer {PERSONAL_KEY_PREFIX}"):
        return _error_response(
            400, _error("It looks like you're trying to use an API key as a Bearer token.", "AUTHENTICATION_ERROR")
        )
    return None


def _parse_body(body: bytes) -> tuple[str, Mapping[str, Any]] | None:
    try:
        asked = json.loads(body) if len(body) <= MOST_BYTES else None
    except ValueError:
        return None
    match asked:
        case {"query": str(text), "variables": dict(variables)}:
            return text, variables
        case {"query": str(text)}:
            return text, {}
        case _:
            return None


def _result_response(result: ExecutionResult) -> tuple[int, Mapping[str, object]]:
    """Assumed: variables that do not match the schema are refused like an invalid document."""
    if not result.errors:
        return 200, {"data": result.data}
    errors = [error.formatted for error in result.errors]
    if any(error.path is None for error in result.errors):
        return 400, {"errors": [{**error, "extensions": {"code": "BAD_USER_INPUT"}} for error in errors]}
    return 200, {"errors": errors, "data": result.data}


def _error_response(status: int, *errors: Mapping[str, object]) -> tuple[int, Mapping[str, object]]:
    return status, {"errors": list(errors)}


def _error(message: str, code: str, words: str = "") -> Mapping[str, object]:
    kind = code.lower().replace("_", " ")  # seen for AUTHENTICATION_ERROR
    return {"message": message, "extensions": {"type": kind, "code": code, "userPresentableMessage": words or message}}
