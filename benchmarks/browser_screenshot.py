"""Take the pictures of docs/exploring.md: a headless Chromium uses the Neo4j Browser as a person would.

    pip install websockets                     # and Chromium, as in apt-get install chromium
    gniah-load neo4j start --browser           # prints the Browser's address and the file with the password
    export GNIAH_NEO4J_PASSWORD_FILE=…
    python benchmarks/browser_screenshot.py http://127.0.0.1:7474/browser/ --qid cec36f --out docs/browser \\
        --picture example --picture true-path

It signs in, switches "Connect result nodes" off, drops the style sheet on the editor, sets the parameter, pastes the
statement of each picture, runs it, and waits until the layout rests. What Chromium sees is saved. The server must hold
published examples.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gniah.cypher.addresses import credentials
from gniah.cypher.queries import browser_text

PATIENCE = 60.0
FRAME = "[data-testid=frame]"
WINDOW = (1400, 900)
PANEL = "[data-testid=vizInspector]"
LAYOUT = f"[...document.querySelector('{FRAME}').querySelectorAll('g.node')].map(e => e.getAttribute('transform')) + ''"

HIDDEN = f"""(() => {{
    const frame = document.querySelector('{FRAME}');
    const edge = frame.querySelector('{PANEL}').getBoundingClientRect().left;
    return [...frame.querySelectorAll('g.node')].some(e => e.getBoundingClientRect().right > edge);
}})()"""

PLACE = """(() => {
    const one = document.querySelector(%s);
    if (!one) return null;
    const r = one.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
    return one.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
})()"""


class Page:
    """A page of Chromium, over the DevTools protocol."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._number = 0

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"never true in {PATIENCE:.0f} s: {expression}")
            time.sleep(0.3)

    def place(self, selector: str) -> tuple[float, float]:
        """Return the middle of the first element that fits, once it is there, uncovered, and does not move."""
        end = time.monotonic() + PATIENCE
        before = None
        while (now := self.value(PLACE % json.dumps(selector))) is None or now != before:
            if time.monotonic() > end:
                raise TimeoutError(f"not there, covered, or moving for {PATIENCE:.0f} s: {selector}")
            before = now
            time.sleep(0.5)
        x, y = now
        return x, y

    def click(self, selector: str) -> None:
        """Click on the first element that fits."""
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        time.sleep(0.5)

    def type(self, selector: str, text: str) -> None:
        """Click on a field and write into it."""
        self.click(selector)
        self.send("Input.insertText", text=text)
        time.sleep(0.5)

    def drop(self, selector: str, file: Path) -> None:
        """Drop a file on an element."""
        x, y = self.place(selector)
        data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)
            time.sleep(0.5)


@contextmanager
def chromium(program: str) -> Iterator[Page]:
    """Give an empty page of a Chromium with a profile of its own."""
    from websockets.sync.client import connect

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        words = [program, "--headless=new", "--no-first-run", "--hide-scrollbars", "--remote-debugging-port=0"]
        words += [f"--user-data-dir={folder}/profile", "--window-size={},{}".format(*WINDOW)]
        words += ["--no-sandbox"] if os.geteuid() == 0 else []
        with log.open("wb") as stream:
            process = subprocess.Popen([*words, "about:blank"], stderr=stream)
        try:
            end = time.monotonic() + PATIENCE
            while not (found := re.search(r"ws://127\.0\.0\.1:(\d+)/", log.read_text(errors="replace"))):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"Chromium does not answer: {log.read_text(errors='replace')[-500:]}")
                time.sleep(0.2)
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/json/list") as answer:
                address = next(one["webSocketDebuggerUrl"] for one in json.load(answer) if one["type"] == "page")
            with connect(address, max_size=None) as socket:
                page = Page(socket)
                width, height = WINDOW
                page.send(
                    "Emulation.setDeviceMetricsOverride",
                    width=width,
                    height=height,
                    deviceScaleFactor=1.5,
                    mobile=False,
                )
                yield page
        finally:
            process.terminate()
            process.wait()


def sign_in(page: Page, address: str) -> None:
    """Open the Browser and connect, as the environment says."""
    given = credentials()
    page.send("Page.navigate", url=address)
    # The form is there before the page knows the server's address, and moves then.
    page.wait("(document.querySelector('[data-testid=boltaddress]') || {}).value")
    for field, text in (("username", given.user), ("password", given.password)):
        page.type(f"[data-testid={field}]", text)
        page.wait(f"document.querySelector('[data-testid={field}]').value.length == {len(text)}")
    page.click("[data-testid=connect]")
    page.wait("!document.querySelector('[data-testid=disconnectedBanner]')")
    page.wait("document.body.innerText.includes('You are connected as user')")


def set_up(page: Page, qid: str) -> None:
    """Switch off what would disturb the picture, load the style sheet, set the parameter."""
    page.click("[data-testid=navigationSettings] button")
    for name in ("autoComplete", "showWheelZoomInfo"):  # the first is labelled "Connect result nodes"
        setting = f"document.querySelector('[data-testid=setting-{name}]')"
        page.wait(f"!!{setting}")
        page.value(f"{setting}.click()")
        page.wait(f"!{setting}.checked")
    page.click("[data-testid=navigationSettings] button")
    with tempfile.TemporaryDirectory() as folder:
        style = Path(folder) / "style.grass"
        style.write_text(browser_text("style"), encoding="utf-8")
        page.drop("[data-testid=activeEditor]", style)
        page.wait(f"document.querySelector('{FRAME}').innerText.includes('node.Paper')")
    run(page, f":param qid => {json.dumps(qid)}")
    page.wait(f"document.querySelector('{FRAME}').innerText.includes('\"qid\": ' + {json.dumps(json.dumps(qid))})")


def run(page: Page, statement: str) -> None:
    """Paste a statement into the editor and run it."""
    page.type("[data-testid=activeEditor] .monaco-editor", statement)
    page.click("[data-testid=editor-Run]")


def take(page: Page, picture: str, file: Path) -> str:
    """Run a picture's statement, wait until it rests, save what is seen; return what the Browser says it displays."""
    run(page, browser_text(f"browser/{picture}"))
    displayed = f"(document.querySelector('{FRAME}').innerText.match(/Displaying .*/) || [''])[0]"
    page.wait(f"{displayed} && document.querySelector('{FRAME}').querySelectorAll('g.node').length > 0")
    page.click(f"{FRAME} button[title=Fullscreen]")
    before = ""
    while (now := page.value(LAYOUT)) != before:
        before = now
        time.sleep(2)
    page.click(f"{FRAME} [aria-label=zoom-to-fit]")
    time.sleep(2)
    for _ in range(5):  # the Browser fits the graph into a place that its own panel covers in part
        if not page.value(HIDDEN):
            break
        page.click(f"{FRAME} [aria-label=zoom-out]")
        time.sleep(1)
    said: str = page.value(displayed)
    shot = page.send("Page.captureScreenshot", format="png")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(base64.b64decode(shot["data"]))
    page.click(f"{FRAME} button[title='Close fullscreen']")
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("address", help="the Browser's address, as gniah-load neo4j start prints it")
    parser.add_argument("--qid", required=True, help="the beginning of an example's qid")
    parser.add_argument("--picture", action="append", required=True, help="as in `gniah-load query --text`: example")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the pictures")
    parser.add_argument("--chromium", default="chromium", help="the program")
    given = parser.parse_args()
    with chromium(given.chromium) as page:
        sign_in(page, given.address)
        set_up(page, given.qid)
        for picture in given.picture:
            file = given.out / f"{picture}.png"
            print(f"{file}: {take(page, picture, file)}")


if __name__ == "__main__":
    main()
