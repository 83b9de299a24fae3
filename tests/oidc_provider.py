"""A certified OpenID provider (oidc-provider) in a process of its own, on loopback."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx2

from tests.node_packages import PROVIDER, node_command


@contextmanager
def run_provider(redirect_uri: str) -> Iterator[str]:
    """Its address."""
    command = node_command(Path(__file__).with_suffix(".mjs"), str(PROVIDER.folder), redirect_uri)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def sign_in(address: str, login: str) -> str:
    """As a person does it there: log in, agree. Gives the address that the browser is sent back to."""
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as browser:
        answer = await browser.get(address)
        for _ in range(10):
            if answer.is_redirect:
                address = urljoin(str(answer.url), answer.headers["location"])
                if "/auth/oidc/callback" in address:
                    return address
                answer = await browser.get(address)
            else:
                place, form = _form(answer, login)
                answer = await browser.post(place, data=form)
    raise AssertionError(f"The provider leads nowhere: {answer.status_code} {answer.text[:300]}")


def _form(answer: httpx2.Response, login: str) -> tuple[str, dict[str, str]]:
    action = re.search(r'action="([^"]+)"', answer.text)
    prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
    assert action, answer.text[:500]
    assert prompt, answer.text[:500]
    return urljoin(str(answer.url), action[1]), {"prompt": prompt[1], "login": login, "password": "any"}
