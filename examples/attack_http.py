"""Attack a model behind HTTP that limits the rate of requests and sometimes fails; kill the attack and continue it.

    python examples/attack_http.py [folder]

A small server on this machine classifies digits. It answers one batch of images per request, refuses requests
that come too fast (429), and fails now and then (503). The attack runs in a process of its own, with a run
folder; that process is killed, and a second one continues from what has been paid for.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

import zerothresh as zt

RATE, FAILING, BUDGET = 100, 0.05, 1500  # requests per second; the share of them that fails; queries


class Server(ThreadingHTTPServer):
    """The model, and counts of what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.model = zt.attack.digits()[0]
        self.lock, self.chance = threading.Lock(), random.Random(0)
        self.images = self.refused = self.failed = 0
        self.last = 0.0


class Handler(BaseHTTPRequestHandler):
    """Answers a POST of a list of images with a list of rows of probabilities."""

    server: Server

    def do_POST(self) -> None:
        size, server = int(self.headers["Content-Length"]), self.server
        body = self.rfile.read(size)
        if len(body) < size:  # the process that asked was killed
            return None
        with server.lock:
            now = time.monotonic()
            if now - server.last < 1 / RATE:
                server.refused += 1
                return self.answer(429, b"")
            server.last = now
            images = np.array(json.loads(body))
            server.images += len(images)
            if server.chance.random() < FAILING:
                server.failed += 1
                return self.answer(503, b"")
            scores = server.model.predict(images)
        return self.answer(200, json.dumps(scores.tolist()).encode())

    def answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def client(url: str):
    """A classifier that asks the server: it waits if requests come too fast; other errors raise, and are retried."""

    def predict(images: np.ndarray) -> np.ndarray:
        data = json.dumps(images.tolist()).encode()
        while True:
            try:
                with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
                    return np.array(json.loads(answer.read()))
            except urllib.error.HTTPError as error:
                if error.code != 429:
                    raise
                time.sleep(1 / RATE)

    return zt.attack.Classifier(predict, bounds=(0, 16), scores="probabilities", name="digits over HTTP")


def attack(url: str, folder: str) -> None:
    """Attack, or continue an attack: the same arguments continue where the last process stopped."""
    from sklearn.datasets import load_digits

    table = load_digits()
    chosen = table.target[1297:] == 3
    found = zt.attack.universal(
        client(url),
        table.images[1297:][chosen],
        table.target[1297:][chosen],
        k=2,
        budget=BUDGET,
        seed=1,
        run=folder,
        retries=5,
        backoff=0.01,
        progress=False,
    )
    print(f"{found!r}\nqueries of this session alone: {found.classifier.queries}", flush=True)


def main() -> None:
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    with tempfile.TemporaryDirectory() as scratch:
        folder = sys.argv[1] if len(sys.argv) > 1 else str(Path(scratch) / "run")
        command = [sys.executable, __file__, "--attack", url, folder]
        first = subprocess.Popen(command)
        while first.poll() is None and server.images < BUDGET // 3:
            time.sleep(0.01)
        if first.poll() is None:
            first.kill()
            print(f"killed the first process after {server.images} images", flush=True)
        else:  # the folder holds an attack that an earlier call of this script has ended, or nearly so
            print(f"the first process ended after {server.images} images", flush=True)
        first.wait()
        subprocess.run(command, check=True)
    server.shutdown()
    print(f"this time the server saw {server.images} images, and the budget is {BUDGET} for all times together")
    print(f"{server.failed} requests failed, {server.refused} came too fast")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--attack"]:
        attack(*sys.argv[2:4])
    else:
        main()
