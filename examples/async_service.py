"""Optimise against an HTTP service that limits the rate of requests and sometimes fails; cancel and continue the run.

    python examples/async_service.py [folder]

A small server on this machine plays the service: it takes 20 ms per request, refuses requests that come too fast (429)
and fails now and then (503). Sixteen requests are in progress at a time, at most 100 begin per second, and those that
fail are made again. In the middle of the run its task is cancelled, as Ctrl-C would do; the same call then continues
from the run folder.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path

import numpy as np

import zerothresh as zt

RATE, FAILING, SECONDS = 100, 0.03, 0.02  # requests per second; the share of them that fails; seconds per request
D, K, BUDGET = 30, 3, 500
BEST = np.zeros(D)
BEST[[4, 11, 26]] = 1.5, -2.0, 1.0


class Service:
    """The server: it measures how far a plant with 30 valves is from its target."""

    def __init__(self) -> None:
        self.chance, self.recent = random.Random(0), deque[float]()
        self.answered = self.failed = self.refused = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):  # the client went away
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(head.lower().split(b"content-length:")[1].split()[0]))
            status, answer = await self.answer(np.array(json.loads(body)))
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(answer)}\r\n\r\n".encode() + answer)
            await writer.drain()
        writer.close()

    async def answer(self, x: np.ndarray) -> tuple[str, bytes]:
        now = asyncio.get_running_loop().time()
        while self.recent and self.recent[0] <= now - 1:
            self.recent.popleft()
        if len(self.recent) > RATE:
            self.refused += 1
            return "429 Too Many Requests", b""
        self.recent.append(now)
        await asyncio.sleep(SECONDS)
        if self.chance.random() < FAILING:
            self.failed += 1
            return "503 Service Unavailable", b""
        self.answered += 1
        return "200 OK", json.dumps(float(np.sqrt(1 + ((x - BEST) ** 2).sum()) - 1)).encode()


class Plant:
    """The objective: one HTTP request per call. With httpx or aiohttp, the body of the call would be one line."""

    fingerprint = "plant"  # tells this problem from others, so that a run folder is not continued with another one

    def __init__(self, port: int) -> None:
        self.port, self.calls = port, 0

    async def __call__(self, x: np.ndarray) -> float:
        self.calls += 1
        body = json.dumps(x.tolist()).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"POST / HTTP/1.1\r\nHost: plant\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            head, _, content = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        if not head.startswith(b"HTTP/1.1 200"):
            raise OSError(head.decode().splitlines()[0])  # the call is made again, up to `retries` times
        return float(json.loads(content))


async def optimise(plant: Plant, folder: Path) -> zt.Result:
    """Run, or go on: the same call does both."""
    return await zt.minimize_async(
        plant,
        D,
        K,
        budget=BUDGET,
        concurrency=16,
        per_second=RATE,
        timeout=60.0,
        retries=10,
        backoff=0.05,
        run=folder,
        seed=0,
        progress=False,
    )


async def main(folder: Path) -> None:
    service = Service()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    plant = Plant(server.sockets[0].getsockname()[1])

    run = asyncio.create_task(optimise(plant, folder))
    while plant.calls < 150 and not run.done():
        await asyncio.sleep(0.01)
    run.cancel()
    try:
        await run
    except asyncio.CancelledError:
        print(f"The run was cancelled; {plant.calls} calls had begun.")
    result = await optimise(plant, folder)
    server.close()

    print(f"It went on from its folder, and ended well: {result.success}")
    print(f"Every call that began was counted once: {plant.calls == result.nfev} ({plant.calls} of {BUDGET} calls)")
    print(f"The service answered {service.answered} requests, failed {service.failed} and refused {service.refused}.")
    print(f"F = {result.fun:.2g}")
    for j in result.support:
        print(f"valve {j:2d}: {result.x[j]:6.3f}, best {BEST[j]:4.1f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(scratch, "run")))
