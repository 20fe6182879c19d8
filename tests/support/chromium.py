"""A browser that a test drives: real events, screenshots, and all that it asks for.

Speaks the DevTools protocol over two pipes (--remote-debugging-pipe), which needs no
further package and no port.
"""

import base64
import contextlib
import json
import os
import pathlib
import select
import subprocess
import tempfile
import time

from support import browser

PATIENCE = 120  # seconds for one answer
READY = "document.documentElement?.dataset.ready === 'yes'"


class Session:
    """One page in a headless browser."""

    def __init__(self, process, out, into):
        self.process, self._out, self._into = process, out, into
        self._buffer, self._number, self._session = b"", 0, None
        self.requests, self.problems = [], []

    def attach(self):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _read(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._into], [], [], end - time.monotonic())
            assert ready, "the browser does not answer"
            self._buffer += os.read(self._into, 1 << 20)
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params"))
        return message

    def _note(self, method, found):
        if method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(found["exceptionDetails"])
        elif method == "Log.entryAdded" and found["entry"]["level"] != "verbose":
            self.problems.append(found["entry"])
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(found["args"])

    def open(self, path, ready=READY):
        self.send("Page.navigate", url=pathlib.Path(path).as_uri())
        self.wait(ready)

    def run(self, script):
        """The value of an expression; what it promises is awaited."""
        found = self.send(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition):
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, f"never: {condition}"
            time.sleep(0.02)

    def mouse(self, kind, x, y, **more):
        where = {"type": kind, "x": x, "y": y, "button": "none", **more}
        self.send("Input.dispatchMouseEvent", **where)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def drag(self, start, end, modifiers=0):
        held = {"button": "left", "modifiers": modifiers}
        self.mouse("mouseMoved", *start, modifiers=modifiers)
        self.mouse("mousePressed", *start, clickCount=1, **held)
        self.mouse("mouseMoved", *end, buttons=1, **held)
        self.mouse("mouseReleased", *end, clickCount=1, **held)

    def key(self, name, code=0):
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                windowsVirtualKeyCode=code,
            )

    def resize(self, width, height):
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def media(self, scheme="light", kind=""):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=kind, features=features)

    def screenshot(self, path, whole=False):
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(found["data"]))

    def downloads(self, folder):
        self.send(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder)
        )


@contextlib.contextmanager
def session():
    """A page that is blank; the browser ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        theirs_in, out = os.pipe()
        into, theirs_out = os.pipe()

        def place():  # the protocol's pipes are descriptors 3 and 4
            first, second = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(first, 3)
            os.dup2(second, 4)

        process = subprocess.Popen(
            [
                browser.find(),
                *browser.FLAGS,
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            preexec_fn=place,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        made = Session(process, out, into)
        try:
            made.attach()
            yield made
        finally:
            process.terminate()
            process.wait(30)
            os.close(out)
            os.close(into)
