#!/usr/bin/env python3
"""Serves one small site from the directory that this file lies in.

    serve.py run      serves until it is told to end
    serve.py ensure   reads the configuration from standard input, keeps it, and has what is laid down
                      served: prints "unchanged" when it is already, else ends the service that runs,
                      starts another, waits until it serves and prints "started"

The page is read once, at the start: what is served is one revision as a whole, and the service
says which (GET /revision). Browsers get the page as HTML, everyone else its text.
"""

import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
PID_FILE = HERE / "service.pid"
PARTS = ("serve.py", "config.json", "index.html")
PATIENCE_SECONDS = 10


def read_parts():
    return {name: (HERE / name).read_bytes() for name in PARTS}


def revision_of(parts):
    digest = hashlib.sha256()
    for name in PARTS:
        digest.update(b"%d:%s:" % (len(parts[name]), name.encode()))
        digest.update(parts[name])
    return digest.hexdigest()


def handler_for(parts, config):
    revision = revision_of(parts).encode() + b"\n"
    text = "{title}\n\n{message}\n".format(**config).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/revision":
                self.answer(200, "text/plain", revision)
            elif self.path != "/":
                self.answer(404, "text/plain", b"not found\n")
            elif "text/html" in self.headers.get("Accept", ""):
                self.answer(200, "text/html", parts["index.html"])
            else:
                self.answer(200, "text/plain", text)

        do_HEAD = do_GET

        def answer(self, status, kind, body):
            self.send_response(status)
            self.send_header("Content-Type", kind + "; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Vary", "Accept")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler


class Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True


def run():
    parts = read_parts()
    config = json.loads(parts["config.json"])
    server = Server((config["bind_address"], config["http_port"]), handler_for(parts, config))
    unfinished = PID_FILE.with_suffix(".new")
    unfinished.write_text("%d\n" % os.getpid())
    unfinished.replace(PID_FILE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server.serve_forever()
    finally:
        server.server_close()


def running_pid():
    """The service's process, unless its number means another process by now."""
    try:
        pid = int(PID_FILE.read_text())
        words = Path("/proc/%d/cmdline" % pid).read_bytes().split(b"\0")
        directory = Path("/proc/%d/cwd" % pid).resolve()
    except (OSError, ValueError):
        return None
    return pid if b"run" in words and b"./serve.py" in words and directory == HERE else None


def stop():
    pid = running_pid()
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while running_pid() == pid:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def served_revision(config):
    address = "http://%s:%d/revision" % (config["bind_address"], config["http_port"])
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(address, timeout=0.5) as answer:
            return answer.read(100).decode("ascii", "replace").strip()
    except (OSError, http.client.HTTPException):
        return None


def start():
    """Starts a service that outlives whoever asked for it.

    An attempt marks what it starts and ends what still carries its mark afterwards; this is meant to stay.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PLATFORM_ATTEMPT"}
    with open(HERE / "service.log", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "./serve.py", "run"],
            cwd=HERE,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def keep(text):
    """Writes the configuration unless it is there already, whole or not at all."""
    place = HERE / "config.json"
    if not place.exists() or place.read_text() != text:
        unfinished = place.with_suffix(".new")
        unfinished.write_text(text)
        unfinished.replace(place)


def ensure():
    keep(sys.stdin.read())
    parts = read_parts()
    config, wanted = json.loads(parts["config.json"]), revision_of(parts)
    if served_revision(config) == wanted:
        return "unchanged"
    stop()
    service = start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (ended := service.poll() is not None) or served_revision(config) != wanted:
        if ended or time.monotonic() > deadline:
            said = (HERE / "service.log").read_text(errors="replace").strip().splitlines()[-1:]
            what = "the service ended at once" if ended else "the service does not answer"
            sys.exit("%s on %s:%d: %s" % (what, config["bind_address"], config["http_port"], "".join(said)))
        time.sleep(0.05)
    return "started"


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "run":
        run()
    elif command == "ensure":
        print(ensure())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
