"""Sends frames into a switch by one TAP while the link of one of two others is cut and restored, and reports the ways of their flows.

    link_cut.py IN OUT_A OUT_B FRAMES

FRAMES has a frame of each flow as a line of hexadecimal digits; the last eight octets are replaced by a number. The link of OUT_A is cut
once every flow comes and both have some, and restored once its flows come by the other; both are waited for, 30 s at most. Prints one
line of JSON. Standard library only.
"""

import json
import socket
import subprocess
import sys
import threading
import time

ALL = 3  # ETH_P_ALL
LONGEST = 30


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
    entrance, a, b, path = sys.argv[1:]
    with open(path) as lines:
        flows = [bytes.fromhex(line.strip()) for line in lines if line.strip()]
    seen, stop = {}, threading.Event()
    listeners = [threading.Thread(target=listen, args=(out, seen, stop)) for out in (a, b)]
    for listener in listeners:
        listener.start()
    sent = 0

    def ways(tap, expected):
        """Sends a round of all flows until their ways are as expected; returns the ways of the last round, and the ms that took."""
        nonlocal sent
        began = time.monotonic()
        while True:
            first = sent
            for flow in flows:
                tap.send(flow[:-8] + sent.to_bytes(8, "big"))
                sent += 1
            patience = time.monotonic() + 0.1
            while time.monotonic() < patience and any(number not in seen for number in range(first, sent)):
                time.sleep(0.001)
            found = [seen.get(number) for number in range(first, sent)]
            after = time.monotonic() - began
            if expected(found) or after > LONGEST:
                return found, 1000 * after

    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as tap:
        tap.bind((entrance, 0))
        # A link that has just come up may lose its carrier once more.
        before, _ = ways(tap, lambda found: all(found) and {a, b} <= set(found))
        subprocess.run(["ip", "link", "set", a, "down"], check=True)
        cut_at = sent
        cut, moved_after = ways(tap, lambda found: all(way == b for way in found))
        subprocess.run(["ip", "link", "set", a, "up"], check=True)
        after, came_back_after = ways(tap, lambda found: found == before)
    time.sleep(0.2)
    stop.set()
    for listener in listeners:
        listener.join()
    on_a = [flow for flow, way in enumerate(before) if way == a]
    on_b = [flow for flow, way in enumerate(before) if way == b]
    # No frame of a flow on B came by A, at any time.
    strayed = {number % len(flows) for number, way in seen.items() if number >= cut_at and way == a}
    print(json.dumps({
        "flows_on_a": len(on_a),
        "flows_on_b": len(on_b),
        "moved": sum(cut[flow] == b for flow in on_a),
        "moved_after_ms": moved_after,
        "stayed": sum(cut[flow] == b and flow not in strayed for flow in on_b),
        "came_back": sum(then == now for then, now in zip(before, after)),
        "came_back_after_ms": came_back_after,
    }))


main()
