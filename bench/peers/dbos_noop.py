"""The same no-op DAGs on DBOS: a chain, a fan-out, and many one-step workflows at once.

Usage: dbos_noop.py DATABASE_URL SIZE OPERATIONS

Reads one word a line from standard input (`chain`, `fan_out`, `many`), runs that once and answers
with one line of JSON, so that a caller can alternate its rounds with ours on the same server.
"""

import asyncio
import json
import sys
import time

from dbos import DBOS, DBOSConfig

DATABASE_URL, SIZE, OPERATIONS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
CONFIG: DBOSConfig = {
    "name": "noop-peer",
    "system_database_url": DATABASE_URL,
    "sys_db_pool_size": 20,
    "log_level": "ERROR",
}
DBOS(config=CONFIG)


@DBOS.step()
def step(number: int) -> int:
    return number


@DBOS.step()
async def step_async(number: int) -> int:
    return number


@DBOS.workflow()
def chain(size: int) -> int:
    return sum(step(number) for number in range(size))


@DBOS.workflow()
async def fan_out(size: int) -> int:
    return sum(await asyncio.gather(*(step_async(number) for number in range(size))))


@DBOS.workflow()
def one(number: int) -> int:
    return step(number)


def run(word: str) -> float:
    started = time.perf_counter()
    if word == "chain":
        assert chain(SIZE) == SIZE * (SIZE - 1) // 2
    elif word == "fan_out":
        assert asyncio.run(fan_out(SIZE)) == SIZE * (SIZE - 1) // 2
    elif word == "many":
        handles = [DBOS.start_workflow(one, number) for number in range(OPERATIONS)]
        assert sorted(handle.get_result() for handle in handles) == list(range(OPERATIONS))
    else:
        raise SystemExit(f"unknown word {word!r}")
    return time.perf_counter() - started


def main() -> None:
    DBOS.launch()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word:
            print(json.dumps({"what": word, "seconds": run(word)}), flush=True)
    DBOS.destroy()


main()
