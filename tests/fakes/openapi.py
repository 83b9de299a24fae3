"""Validation of requests and responses against an OpenAPI 3.0 document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jsonschema_rs

Json = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Operation:
    """`path` is a pattern with a group for each parameter."""

    name: str
    path: re.Pattern[str]
    spec: Json
    document: Document

    def path_values(self, path: str) -> dict[str, str]:
        found = self.path.fullmatch(path)
        return found.groupdict() if found else {}

    def problems(self, query: Mapping[str, str], body: object) -> list[str]:
        """Of a request. What GitHub would silently ignore is a problem too: it is a mistake of ours."""
        known = {
            one["name"]: one
            for one in map(self.document.resolve, self.spec.get("parameters", ()))
            if one["in"] == "query"
        }
        problems = [f"the query has no {name}" for name in query if name not in known]
        problems += [
            f"the query lacks {name}" for name, one in known.items() if one.get("required") and name not in query
        ]
        for name in set(query) & set(known):
            value = _read(query[name], known[name]["schema"])
            problems += [f"{name}: {words}" for words in self.document.schema_errors(known[name]["schema"], value)]
        return problems + self._body_problems(body)

    def response_problems(self, status: int, body: object) -> list[str]:
        answer = self.document.resolve(self.spec["responses"].get(str(status), {}))
        if not answer:
            return [f"{self.name} never answers with {status}"]
        content = answer.get("content", {}).get("application/json")
        return self.document.schema_errors(content["schema"], body) if content else []

    def _body_problems(self, body: object) -> list[str]:
        asked = self.spec.get("requestBody")
        if asked is None:
            return [] if body is None else [f"{self.name} takes no body"]
        if body is None:
            return ["the body is missing"] if asked.get("required") else []
        schema = asked["content"]["application/json"]["schema"]
        known = schema.get("properties")  # a choice of forms has none of its own
        unknown = sorted(set(body) - set(known)) if isinstance(body, dict) and known is not None else []
        return [f"the body has no {name}" for name in unknown] + self.document.schema_errors(schema, body)


class Document:
    def __init__(self, file: Path) -> None:
        self._root = _to_json_schema(json.loads(file.read_text()))
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    @cached_property
    def operations(self) -> list[tuple[str, Operation]]:
        """With their methods; the paths with the fewest parameters first."""
        paths = sorted(self._root["paths"].items(), key=lambda item: item[0].count("{"))
        return [
            (method.upper(), Operation(said["operationId"], _pattern(path), said, self))
            for path, methods in paths
            for method, said in methods.items()
            if method in METHODS
        ]

    def find(self, method: str, path: str) -> Operation | None:
        return next((one for verb, one in self.operations if verb == method and one.path.fullmatch(path)), None)

    def resolve(self, said: Json) -> Json:
        """What a reference refers to."""
        if "$ref" not in said:
            return said
        found: Any = self._root
        for step in said["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return self.resolve(found)

    def schema_errors(self, schema: Json, value: object) -> list[str]:
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            whole = {**schema, "components": self._root["components"]}
            self._validators[key] = jsonschema_rs.validator_for(whole, validate_formats=True)
        found = self._validators[key].iter_errors(value)
        return [f"/{'/'.join(map(str, error.instance_path))}: {error.message[:300]}" for error in found]


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)))


def _read(text: str, schema: Json) -> object:
    return int(text) if schema.get("type") == "integer" and text.isdigit() else text


def _to_json_schema(schema: Any) -> Any:
    """`nullable` of OpenAPI 3.0 in the words of JSON Schema."""
    if isinstance(schema, list):
        return [_to_json_schema(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _to_json_schema(inner) for name, inner in schema.items() if name != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain
