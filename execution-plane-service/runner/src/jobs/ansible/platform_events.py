"""Tells the runner what happened to each task on each host, apart from anything that is printed.

One JSON object a line goes to the descriptor named by PLATFORM_EVENTS_FD, which no task inherits.
Everything that a play starts on its hosts carries the attempt's mark in its environment.
"""
import json
import os

from ansible.plugins.callback import CallbackBase

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
