"""Sends datagrams, or counts them one by one: frames.py send FROM TO FLOWS PPS | frames.py count AT

Both run until standard input is closed and print what they did as `sent N` or `counted N`; each datagram is counted once.
"""
import select
import socket
import sys
import time

what, at = sys.argv[1], sys.argv[2]
PORT = 7000
if what == "count":
    inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    inbox.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    inbox.bind((at, PORT))
    seen = set()
    while True:
        ready, _, _ = select.select([inbox, sys.stdin], [], [])
        if inbox in ready:
            seen.add(inbox.recv(2048))
        elif ready:
            break
    print(f"counted {len(seen)}", flush=True)
else:
    to, flows, rate = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    sockets = []
    for flow in range(flows):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((at, 20000 + flow))
        one.connect((to, PORT))
        sockets.append(one)
    sent, begun = 0, time.monotonic()
    while not select.select([sys.stdin], [], [], 0)[0]:
        due = int((time.monotonic() - begun) * rate)
        while sent < due:
            flow = sent % flows
            sockets[flow].send(f"{at} {flow} {sent}".encode().ljust(200))
            sent += 1
        time.sleep(0.002)
    print(f"sent {sent}", flush=True)
