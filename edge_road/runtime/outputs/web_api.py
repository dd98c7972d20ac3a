"""What the web server offers, for people (docs) and for tools (OpenAPI)."""

from __future__ import annotations

from typing import Any

from edge_road import __version__
from edge_road.meanings import explain
from edge_road.preprocess import Crop
from edge_road.runtime.crop_setup import CropChange

JSON, TEXT = "application/json", "text/plain"
NO_PICTURE = "there is none, or it is off"


def openapi() -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "edge_road",
            "version": __version__,
            "summary": "The road condition of one vehicle",
        },
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "edge_road_PORT"},
            }
        },
        "paths": {
            "/state": {"get": _reading("the newest message", JSON, {"503": "no message that still holds"})},
            "/events": {
                "get": _reading(
                    "server-sent events: state, event and health", "text/event-stream", {"503": "full"}
                )
            },
            "/history": {"get": _reading("ten minutes of states, and the last events", JSON, {})},
            "/pictures/{number}.jpg": {
                "parameters": [_number()],
                "get": _reading("what the camera saw at an event", "image/jpeg", {"204": NO_PICTURE}),
            },
            "/health": {"get": _reading("how the daemon fares", JSON, {"503": "it is not alive"})},
            "/about": {"get": _reading("what runs here", JSON, {})},
            "/parts": {"get": _reading("which parts of the picture spoke for the state", JSON, {})},
            "/metrics": {"get": _reading("figures for Prometheus", TEXT, {})},
            "/camera": {
                "get": _reading(
                    "pictures as they come: four bytes of length and a JPEG, again and again",
                    "application/octet-stream",
                    {"204": NO_PICTURE, "503": "full"},
                )
            },
            "/snapshot.jpg": {"get": _reading("the newest picture", "image/jpeg", {"204": NO_PICTURE})},
            "/session": {"get": _reading("what this browser may do", JSON, {})},
            "/login": {"post": _logging_in()},
            "/logout": {"post": _writing("end the session", {"204": "ended"})},
            "/reload": {"post": _writing("read the vehicle file again", {"202": "asked for"})},
            "/setup": {"post": _changing("change the crop in the vehicle file", "written, and asked for")},
            "/setup/preview": {"post": _changing("the lines that would change", "the lines")},
            "/smoke": {
                "get": _reading("the last result of the self-test", JSON, {}),
                "post": _writing(
                    "run the self-test of the bundle",
                    {"200": "the result", "409": "one is running, or there is no bundle"},
                ),
            },
        },
    }


def _number() -> dict[str, Any]:
    return {"name": "number", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}


def _logging_in() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"token": {"type": "string"}},
        "required": ["token"],
        "additionalProperties": False,
    }
    others = {"204": "the cookie of a session", "409": "no token is set", "422": "there is none in it"}
    body = {"required": True, "content": {JSON: {"schema": schema}}}
    return {"summary": "show the token once", "responses": _responses(others), "requestBody": body}


def _reading(summary: str, content: str, others: dict[str, str]) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {"200": {"description": "found", "content": {content: {}}}, **_responses(others)},
    }


def _writing(summary: str, responses: dict[str, str]) -> dict[str, Any]:
    return {
        "summary": summary,
        "security": [{"token": []}, {"session": []}],
        "responses": _responses(responses),
    }


def _changing(summary: str, done: str) -> dict[str, Any]:
    refused = {"200": done, "409": "there is no vehicle file", "422": "not a change that makes sense"}
    schema = CropChange.model_json_schema()
    schema["properties"]["crop"] = schema.pop("$defs")["Crop"]
    explain(Crop, schema["properties"]["crop"])
    body = {"required": True, "content": {JSON: {"schema": schema}}}
    return {**_writing(summary, refused), "requestBody": body}


def _responses(others: dict[str, str]) -> dict[str, Any]:
    refused = {
        "401": "the token is missing",
        "403": "another site asks",
        "405": "not this method",
        "414": "too long",
        "421": "not this host",
        "429": "too many wrong tokens",
    }
    return {status: {"description": text} for status, text in {**refused, **others}.items()}
