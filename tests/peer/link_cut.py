"""Sends frames into a switch by one TAP while the link of one of two others is cut and restored, and reports what was lost.

    link_cut.py IN OUT_A OUT_B FRAMES RATE SECONDS CUT_AT MEND_AT

FRAMES has a frame of each flow as a line of hexadecimal digits; the last eight octets are replaced by a number. RATE is in frames a
second, times in seconds from the start. Prints one line of JSON. Standard library only.
"""

import json
import socket
import subprocess
import sys
import threading
import time

ALL = 3  # ETH_P_ALL


def listen(interface, seen, stop):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL)) as tap:
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
        tap.bind((interface, 0))
        tap.settimeout(0.1)
        while not stop.is_set():
            try:
                frame = tap.recv(2048)
            except (TimeoutError, OSError):
                # The interface is down: it comes up again.
                continue
            if len(frame) > 60 and frame[12:14] == b"\x08\x00":
                seen[int.from_bytes(frame[-8:], "big")] = interface


def main():
    entrance, a, b, path, rate, seconds, cut_at, mend_at = sys.argv[1:]
    with open(path) as lines:
        flows = [bytes.fromhex(line.strip()) for line in lines if line.strip()]
    rate, seconds, cut_at, mend_at = int(rate), float(seconds), float(cut_at), float(mend_at)
    seen, stop = {}, threading.Event()
    listeners = [threading.Thread(target=listen, args=(out, seen, stop)) for out in (a, b)]
    for listener in listeners:
        listener.start()
    time.sleep(0.3)
    sent, events = [], [(cut_at, "down"), (mend_at, "up")]
    times = {}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as tap:
        tap.bind((entrance, 0))
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            if events and time.monotonic() - begin >= events[0][0]:
                _, state = events.pop(0)
                times[state] = time.monotonic() - begin
                subprocess.run(["ip", "link", "set", a, state], check=True)
            number = len(sent)
            tap.send(flows[number % len(flows)][:-8] + number.to_bytes(8, "big"))
            sent.append(time.monotonic() - begin)
            pause = begin + number / rate - time.monotonic()
            if pause > 0:
                time.sleep(pause)
    time.sleep(0.5)
    stop.set()
    for listener in listeners:
        listener.join()

    def paths(since, until):
        """Returns the paths of each flow in a period."""
        ways = {}
        for number, at in enumerate(sent):
            if since <= at < until and number in seen:
                ways.setdefault(number % len(flows), set()).add(seen[number])
        return ways

    before = paths(0, times["down"])
    on_b = {flow for flow, ways in before.items() if ways == {b}}
    lost = [number for number in range(len(sent)) if number not in seen]
    lost_a = [sent[number] - times["down"] for number in lost if number % len(flows) not in on_b]
    cut = paths(times["down"] + 0.2, times["up"])
    after = paths(times["up"] + 0.7, seconds)
    print(json.dumps({
        "sent": len(sent),
        "flows_on_a": sum(ways == {a} for ways in before.values()),
        "flows_on_b": len(on_b),
        "lost_of_b": sum(number % len(flows) in on_b for number in lost),
        "lost_of_a": len(lost_a),
        "withdrawn_after_ms": 1000 * max((at for at in lost_a if at < times["up"] - times["down"]), default=0),
        "moved": sum(cut.get(flow) == {b} for flow in before if flow not in on_b),
        "stayed": sum(cut.get(flow) == {b} for flow in on_b),
        "came_back": sum(after.get(flow) == before[flow] for flow in before),
    }))


main()
