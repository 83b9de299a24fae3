"""Validation of wire data against the vendor's own schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

VENDOR = Path(__file__).resolve().parents[1] / "vendor"


def schema_errors(vendor: str, name: str, instance: object) -> list[str]:
    """Validation errors; empty if the instance is valid."""
    return [
        f"{'/'.join(map(str, e.instance_path))}: {e.message[:300]}"
        for e in _validator(vendor, name).iter_errors(instance)
    ]


@cache
def schema_properties(vendor: str, name: str) -> frozenset[str]:
    """Every key that an object of this kind may have at its top."""
    return frozenset(_keys(_schema(vendor, name), _document(vendor)))


@cache
def _validator(vendor: str, name: str) -> Any:
    return jsonschema_rs.validator_for(_schema(vendor, name))


def _schema(vendor: str, name: str) -> dict[str, Any]:
    if vendor == "anthropic":
        return json.loads((VENDOR / vendor / f"{name}.schema.json").read_text())
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": f"#/components/schemas/{name}"}
    return {**schema, "components": _document(vendor)["components"]}


@cache
def _document(vendor: str) -> dict[str, Any]:
    if vendor == "anthropic":
        return {}
    folder, _, part = vendor.partition("/")
    return json.loads((VENDOR / folder / f"{part}.openapi.json").read_text())


def _keys(schema: Mapping[str, Any], document: Mapping[str, Any]) -> set[str]:
    found = set(schema.get("properties", {}))
    for part in schema.get("allOf", []):
        found |= _keys(part, document)
    if ref := schema.get("$ref"):
        found |= _keys(document["components"]["schemas"][ref.rpartition("/")[2]], document)
    return found
