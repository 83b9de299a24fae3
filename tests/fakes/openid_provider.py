"""A fake OpenID provider on loopback that follows the protocol, PKCE included, and can be made to lie."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "interlock", "a secret of the client"
Claims = dict[str, Any]


@dataclass
class OpenIdProvider:
    """`asked` counts requests by path; `keys` are those that it shows, the first one signs."""

    url: str
    keys: list[RSAKey]
    codes: dict[str, tuple[str, str, Callable[[], str]]] = field(default_factory=dict)
    request_counts: list[str] = field(default_factory=list)
    issuer: str = ""
    userinfo: Claims | None = None

    def sign_in(self, address: str, *, token: str | None = None, **changes: Any) -> dict[str, str]:
        """What the browser brings back from `address`; `changes` are to the claims, None takes one away."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert (query["client_id"], query["response_type"]) == (CLIENT, "code")
        assert (query["code_challenge_method"], query["scope"].split()[0]) == ("S256", "openid")
        code = secrets.token_urlsafe(8)
        claims = {key: value for key, value in {**self.claims(query["nonce"]), **changes}.items() if value is not None}
        made = token if token is not None else self.sign(claims)
        self.codes[code] = query["code_challenge"], query["redirect_uri"], lambda: made
        return {"code": code, "state": query["state"]}

    def claims(self, nonce: str, now: int | None = None) -> Claims:
        at = int(time.time()) if now is None else now
        return {
            "iss": self.url,
            "sub": "ann-at-the-provider",
            "aud": CLIENT,
            "iat": at,
            "exp": at + 300,
            "nonce": nonce,
            "email": "ann@example.com",
            "email_verified": True,
        }

    def sign(self, claims: Claims, key: RSAKey | None = None) -> str:
        by = key or self.keys[0]
        return jwt.encode({"alg": "RS256", "kid": by.kid}, claims, by)

    def respond(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, object]:
        self.request_counts.append(path)
        match path:
            case "/.well-known/openid-configuration":
                return 200, self._metadata()
            case "/jwks":
                return 200, {"keys": [key.as_dict(private=False) for key in self.keys]}
            case "/token":
                return self._token(form, authorization)
            case "/userinfo" if self.userinfo is not None and authorization == "Bearer x":
                return 200, self.userinfo
            case _:
                return 404, {}

    def _metadata(self) -> object:
        return {
            "issuer": self.issuer or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            **({} if self.userinfo is None else {"userinfo_endpoint": f"{self.url}/userinfo"}),
        }

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, object]:
        expected = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        challenge, redirect_uri, make = self.codes.pop(form.get("code", ""), ("", "", str))
        proof = base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
        if authorization != expected or proof != challenge or form.get("redirect_uri") != redirect_uri:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": make()}


def new_key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})


@contextmanager
def run_openid_provider() -> Iterator[OpenIdProvider]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    made = OpenIdProvider(f"http://127.0.0.1:{server.server_port}", [new_key()])
    server.identity = made  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self._answer({key: values[0] for key, values in parse_qs(body).items()})

    def _answer(self, form: dict[str, str]) -> None:
        found: OpenIdProvider = self.server.identity  # type: ignore[attr-defined]
        status, value = found.respond(urlsplit(self.path).path, form, self.headers.get("authorization", ""))
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Tests say what they want to know."""
