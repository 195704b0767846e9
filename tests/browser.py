"""A headless browser controlled over its debugging pipe: tests wait for a condition instead of a fixed time.

A loaded machine may not have drawn a single frame after a fixed time.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")

FLAGS = (
    *("--headless", "--no-sandbox", "--no-first-run", "--disable-sync", "--disable-quic", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"),
)
FLAT = ("--disable-gpu", "--disable-3d-apis")
SOFTWARE_3D = ("--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader")
PATIENCE = 90.0  # s


class Page:
    """One open page; `complaints` are its console messages and errors, `requests` the addresses that it requested."""

    def __init__(self, commands: int, answers: int) -> None:
        self.commands, self.answers = commands, answers
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.left = b""
        self.number = 0
        self.session: str | None = None

    def open(self, address: str, size: tuple[int, int]) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)
        self.ask("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, expression: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Return once the JavaScript `condition` holds; fail after `PATIENCE`."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"{condition} never held; the page said {self.complaints}"
            time.sleep(0.05)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.number:
            self.note(answer)
        assert "error" not in answer, answer
        return dict(answer["result"])

    def receive(self) -> dict[str, Any]:
        while b"\0" not in self.left:
            ready, _, _ = select.select([self.answers], [], [], PATIENCE)
            more = os.read(self.answers, 1 << 20) if ready else b""
            assert more, "the browser has gone silent"
            self.left += more
        message, self.left = self.left.split(b"\0", 1)
        return dict(json.loads(message))

    def note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(value.get("value", "")) for value in parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])


def high_pipe() -> tuple[int, int]:
    """A pipe whose two ends are not descriptors 3 and 4."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return high[0], high[1]


@contextmanager
def opened(
    path: Path, profile: Path, size: tuple[int, int] = (1280, 900), extra: tuple[str, ...] = FLAT
) -> Iterator[Page]:
    """Open the file `path` in a browser whose profile is the folder `profile`."""
    (read_commands, commands), (answers, write_answers) = high_pipe(), high_pipe()
    shell = f'exec "$0" "$@" 3<&{read_commands} 4>&{write_answers}'  # the pipe is by contract at descriptors 3 and 4
    command = ["bash", "-c", shell, str(CHROMIUM), *FLAGS, *extra, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        command, pass_fds=(read_commands, write_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(read_commands)
    os.close(write_answers)
    try:
        page = Page(commands, answers)
        page.open(path.as_uri(), size)
        yield page
    finally:
        process.kill()
        process.wait()
        os.close(commands)
        os.close(answers)
