#!/usr/bin/env python3
"""Serves one small site from the directory that this file lies in.

    serve.py run        serves until it is told to end
    serve.py revision   prints the digest of what is laid down
    serve.py wait PID   waits until the process serves what is laid down; fails when it cannot
    serve.py stop       ends the service of this directory and prints "stopped" or "not running"

The pages are read once, at the start: what is served is one revision as a whole, and the service
says which (GET /revision). Browsers get the page as HTML, everyone else its text.
"""

import hashlib
import http.client
import json
import os
import signal
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
PID_FILE = HERE / "service.pid"
PARTS = ("serve.py", "config.json", "index.html", "index.txt")
PATIENCE_SECONDS = 10


def read_parts():
    return {name: (HERE / name).read_bytes() for name in PARTS}


def revision_of(parts):
    digest = hashlib.sha256()
    for name in PARTS:
        digest.update(b"%d:%s:" % (len(parts[name]), name.encode()))
        digest.update(parts[name])
    return digest.hexdigest()


def handler_for(parts):
    revision = revision_of(parts).encode() + b"\n"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/revision":
                self.answer(200, "text/plain", revision)
            elif self.path != "/":
                self.answer(404, "text/plain", b"not found\n")
            elif "text/html" in self.headers.get("Accept", ""):
                self.answer(200, "text/html", parts["index.html"])
            else:
                self.answer(200, "text/plain", parts["index.txt"])

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
    server = Server((config["bind_address"], config["http_port"]), handler_for(parts))
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
        return "not running"
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while running_pid() == pid:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return "stopped"


def served_revision(config):
    address = "http://%s:%d/revision" % (config["bind_address"], config["http_port"])
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(address, timeout=1) as answer:
            return answer.read(100).decode("ascii", "replace").strip()
    except (OSError, http.client.HTTPException):
        return None


def wait(pid):
    parts = read_parts()
    config, wanted = json.loads(parts["config.json"]), revision_of(parts)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while served_revision(config) != wanted:
        ended = not Path("/proc/%d" % pid).exists()
        if ended or time.monotonic() > deadline:
            said = (HERE / "service.log").read_text(errors="replace").strip().splitlines()[-1:]
            what = "the service ended at once" if ended else "the service does not answer"
            sys.exit("%s on %s:%d: %s" % (what, config["bind_address"], config["http_port"], "".join(said)))
        time.sleep(0.05)
    return "serving " + wanted


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "wait" and len(sys.argv) == 3:
        print(wait(int(sys.argv[2])))
    elif command == "run":
        run()
    elif command == "revision":
        print(revision_of(read_parts()))
    elif command == "stop":
        print(stop())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
