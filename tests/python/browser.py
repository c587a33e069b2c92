"""Drives a real browser: python browser.py CHROMIUM URL, with questions on standard input.

Each line is an expression of JavaScript. It is asked in the page until what it gives is neither
null, false, 0 nor empty, for 20 seconds at most, and its value is printed as a line of JSON. A line
that begins with `screenshot ` writes one to the file that follows. What the page or the browser
complained about stands in a last line, a list. The exit status is 1 where an answer did not come.
"""

import base64
import json
import subprocess
import sys
import tempfile
import time

import websocket

PATIENCE_S = 20


class Browser:
    def __init__(self, program, directory):
        # Without a sandbox, as the tests run as root in containers, and on pages of our own alone.
        self.process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--window-size=1600,1400",
                "--remote-debugging-port=0",
                "--remote-allow-origins=*",
                f"--user-data-dir={directory}",
                "about:blank",
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "DevTools listening on " in line:
                address = line.split("DevTools listening on ")[1].strip()
                break
        else:
            raise SystemExit("the browser did not start: " + "".join(said))
        self.socket = websocket.create_connection(address, timeout=PATIENCE_S)
        self.number = 0
        self.session = None
        self.complaints = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.heard(answer)

    def heard(self, event):
        parameters = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"]["text"])

    def until(self, expression):
        end = time.monotonic() + PATIENCE_S
        while True:
            answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
            value = answer["result"].get("value")
            if value:
                return value
            if time.monotonic() > end:
                page = self.call(
                    "Runtime.evaluate", expression="document.body.innerText", returnByValue=True
                )
                raise SystemExit(f"no answer to {expression}\n{page['result'].get('value')}")
            time.sleep(0.1)

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as out:
            out.write(base64.b64decode(shot["data"]))


def main():
    program, url = sys.argv[1:]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        browser = Browser(program, directory)
        try:
            browser.call("Page.navigate", url=url)
            for line in sys.stdin:
                line = line.strip()
                if line.startswith("screenshot "):
                    browser.screenshot(line.removeprefix("screenshot "))
                elif line:
                    print(json.dumps(browser.until(line)), flush=True)
            print(json.dumps(browser.complaints), flush=True)
        finally:
            browser.process.terminate()
            browser.process.wait()


main()
