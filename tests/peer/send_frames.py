"""A host on each side of a switch that sends frames on command, and reports the frames that came back on the near side.

    send_frames.py NEAR_IFACE FAR_IFACE < ORDERS

One command per line: `near HEX` and `far HEX` send a frame, `wait MS` lets time pass, `end` ends. Every frame that arrives on the near
side is printed in hex. Standard library only.
"""
import select
import socket
import sys
import time


def raw(interface):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    # SO_RCVBUFFORCE: a busy machine may keep us from our core for long.
    sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    sock.bind((interface, 3))
    return sock


def listen(sock, seconds):
    until = time.monotonic() + seconds
    while True:
        left = until - time.monotonic()
        if not select.select([sock], [], [], max(left, 0))[0]:
            return
        frame, address = sock.recvfrom(4096)
        if address[2] != socket.PACKET_OUTGOING:
            print(frame.hex())


def main():
    ends = {"near": raw(sys.argv[1]), "far": raw(sys.argv[2])}
    for line in sys.stdin:
        what, _, rest = line.strip().partition(" ")
        if what == "end":
            break
        if what == "wait":
            listen(ends["near"], float(rest) / 1e3)
        else:
            ends[what].send(bytes.fromhex(rest))


main()
