"""Tells the runner what happened to each task on each host, apart from anything that is printed.

One JSON object a line goes to the descriptor named by PLATFORM_EVENTS_FD, which no task inherits.
Everything that a play starts on its hosts carries the attempt's mark in its environment: every
command that ssh brings has it, and first looks for the tombstone of an attempt that was ended; what
sudo starts, with an environment of its own, has it from the play.
"""
import functools
import json
import os
import shlex

from ansible.plugins.callback import CallbackBase
from ansible.plugins.connection import ssh

DOCUMENTATION = """
name: platform_events
type: aggregate
short_description: events for the runner
description: [one JSON object a line on a descriptor of its own]
"""

LONGEST = 2000


def text_of(value):
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def reason_of(result):
    """Why a task failed, in its own words: the message, else what it wrote."""
    items = [item for item in result.get("results") or [] if isinstance(item, dict)]
    failed = [item for item in items if item.get("failed") or item.get("unreachable")]
    if failed:
        told = [reason_of(item) for item in failed[:3]]
        return text_of("; ".join(dict.fromkeys(told)))
    parts = [result.get("msg")]
    for name in ("stderr", "module_stderr", "stdout", "module_stdout", "reason"):
        if result.get(name):
            parts.append(result[name])
            break
    said = [text_of(part).strip() for part in parts if part]
    return text_of(": ".join(part for part in said if part)) or "no reason given"


def marking(exec_command, mark, tombstone):
    """The mark first, then the look: so a command that a sweep did not see does not begin."""
    look = f"if [ -e {tombstone} ]; then echo 'this attempt was ended' >&2; exit 254; fi\n"

    @functools.wraps(exec_command)
    def marked(connection, cmd, *args, **kwargs):
        if not getattr(connection._shell, "_IS_WINDOWS", False):
            cmd = f"exec env PLATFORM_ATTEMPT={mark} /bin/sh -c {shlex.quote(look + cmd)}"
        return exec_command(connection, cmd, *args, **kwargs)

    return marked


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "platform_events"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        number = int(os.environ["PLATFORM_EVENTS_FD"])
        os.set_inheritable(number, False)
        self.stream = os.fdopen(number, "wb", buffering=0)
        self.mark = os.environ["PLATFORM_ATTEMPT"]
        plain = ssh.Connection.exec_command
        ssh.Connection.exec_command = marking(plain, self.mark, os.environ["PLATFORM_TOMBSTONE"])

    def tell(self, event, **fields):
        fields["event"] = event
        line = json.dumps(fields, ensure_ascii=False, default=str)
        self.stream.write(line.encode("utf-8", "replace") + b"\n")

    def v2_playbook_on_play_start(self, play):
        # What runs is a copy of the play whose blocks still ask the original for their environment.
        blocks = [*play.pre_tasks, *play.tasks, *play.post_tasks, *play.handlers]
        plays = [play] + [block._play for block in blocks if getattr(block, "_play", None)]
        for each in {id(each): each for each in plays}.values():
            each.environment = [{"PLATFORM_ATTEMPT": self.mark}] + list(each.environment or [])
        self.tell("play", play=play.get_name())

    def v2_playbook_on_no_hosts_matched(self):
        self.tell("no_hosts_matched")

    def task(self, status, result, **fields):
        task = result.task
        self.tell(
            "task",
            status=status,
            host=result.host.get_name(),
            task=task.get_name(),
            become=bool(task.become),
            **fields,
        )

    def v2_runner_on_ok(self, result):
        self.task("changed" if result.result.get("changed") else "ok", result)

    def v2_runner_on_skipped(self, result):
        self.task("skipped", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.task("failed", result, ignored=bool(ignore_errors), message=reason_of(result.result))

    def v2_runner_on_unreachable(self, result):
        self.task("unreachable", result, message=reason_of(result.result))

    def v2_playbook_on_stats(self, stats):
        hosts = {host: stats.summarize(host) for host in stats.processed}
        self.tell("stats", hosts=hosts)
