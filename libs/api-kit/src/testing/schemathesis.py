"""What the generated requests need to get past the door: a token of a role that may call, real objects in
the path, and no long waits. Read from the file that PLATFORM_API_KNOWN names.

A part of a request that is meant to be wrong is left as it is. What is drawn depends on the request alone, so
that a seed always gives the same requests.
"""

import base64
import json
import os
import zlib
from pathlib import Path

import schemathesis
from schemathesis.core.parameters import ParameterLocation

KNOWN = json.loads(Path(os.environ["PLATFORM_API_KNOWN"]).read_text(encoding="utf-8"))


def is_right(case, where):
    return case.meta is None or not case.meta.is_negative_at(where)


def draw(case, sides):
    """A number below `sides`."""
    text = repr((case.method, case.path, case.path_parameters, case.query, case.body))
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % sides


def put_values(fields, often):
    """Nobody waits; other values are those of something real, often."""
    for name, value in KNOWN["values"].items():
        if name in fields and (often or name == "wait_seconds"):
            fields[name] = value


@schemathesis.hook
def before_call(context, case, kwargs):
    known = KNOWN["operations"].get(f"{case.method.upper()} {case.operation.path}")
    if known is None:
        return
    case.headers["Authorization"] = f"Bearer {known['token']}"
    number = draw(case, 8)
    if known["path"] and number and is_right(case, ParameterLocation.PATH):
        case.path_parameters = dict(known["path"])
    if isinstance(case.query, dict) and is_right(case, ParameterLocation.QUERY):
        put_values(case.query, number % 2)
    if not is_right(case, ParameterLocation.BODY):
        return
    if known["body"] is not None and number % 4 == 1:
        case.body = known["body"]
    elif known["bytes"] is not None and number % 2:
        case.body = base64.b64decode(known["bytes"])
    if isinstance(case.body, dict):
        case.body = dict(case.body)
        put_values(case.body, number % 2)


@schemathesis.serializer("application/x-tar")
def archive(context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
