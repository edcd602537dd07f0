#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parameter server and its workers over TCP, one connection each:

  parameter_server.py server PORT WORKERS BYTES ROUNDS    prints the microseconds of each round
                                                            and of its pushes
  parameter_server.py worker ADDRESS PORT BYTES ROUNDS SEED

In a round each worker pushes BYTES of gradients and pulls as many parameters; the server adds up what
it gets and answers all when it has the last. A round begins when the server sends a byte to all, and
ends when all have said by a byte that they have their parameters; its pushes end when the server has
the last gradient. The first round is not counted."""

import socket
import sys
import threading
import time

LANE = 4  # Bytes of a gradient. Whole numbers below 2^24: up to 256 of them add up in a lane.
MOST_WORKERS = 256
BYTE = b"x"


def gradients(seed, size):
    return bytes([seed % 256, 1, 1, 0]) * (size // LANE)


def total_of(parts):
    """The sum of each lane, as one sum of long numbers: no lane overflows into the next."""
    size = len(parts[0])
    return sum(int.from_bytes(part, "little") for part in parts).to_bytes(size, "little")


def receive(connection, size):
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view.nbytes > 0:
        count = connection.recv_into(view)
        if count == 0:
            raise ConnectionError("the other end closed the connection")
        view = view[count:]
    return bytes(buffer)


def on_all(connections, work):
    """work(index, connection) for all at once; the results in order."""
    results = [None] * len(connections)

    def one(index):
        results[index] = work(index, connections[index])

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(connections))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if None in results:
        raise ConnectionError("a worker is gone")
    return results


def serve(port, workers, size, rounds):
    listener = socket.create_server(("", port), backlog=workers)
    print("ready", flush=True)
    connections = [listener.accept()[0] for _ in range(workers)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def push(_, connection):
        connection.sendall(BYTE)
        return receive(connection, size)

    def answer(parameters, connection):
        connection.sendall(parameters)
        return receive(connection, 1)

    for number in range(rounds + 1):
        begin = time.monotonic()
        parts = on_all(connections, push)
        pushed = time.monotonic()
        parameters = total_of(parts)
        on_all(connections, lambda _, connection: answer(parameters, connection))
        if number > 0:
            now = time.monotonic()
            print(f"{(now - begin) * 1e6:.1f} {(pushed - begin) * 1e6:.1f}", flush=True)


def work(address, port, size, rounds, seed):
    with socket.create_connection((address, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(rounds + 1):
            receive(connection, 1)
            connection.sendall(gradients(seed, size))
            receive(connection, size)
            connection.sendall(BYTE)


def main(words):
    if words[0] == "server":
        port, workers, size, rounds = map(int, words[1:])
        if workers > MOST_WORKERS or size % LANE != 0:
            sys.exit(f"expected at most {MOST_WORKERS} workers and a multiple of {LANE} bytes")
        serve(port, workers, size, rounds)
    else:
        work(words[1], *map(int, words[2:]))


if __name__ == "__main__":
    main(sys.argv[1:])
