"""A neighbour of the switch, the host 10.0.2.3: asks 10.0.2.1 by ARP and ping 100 times a second, and counts the answers. Standard library only.

    neighbor.py IFACE SECONDS
"""
import json
import select
import socket
import struct
import sys
import time

EACH = 0.01


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def questions():
    own, switch = bytes([2, 0, 0, 0, 2, 3]), bytes([2, 0, 0, 0, 2, 1])
    source, to = bytes([10, 0, 2, 3]), bytes([10, 0, 2, 1])
    arp = b"\xff" * 6 + own + bytes.fromhex("08060001080006040001") + own + source + bytes(6) + to
    echo = struct.pack("!BBHHH", 8, 0, 0, 0x4E50, 1)
    echo = echo[:2] + struct.pack("!H", checksum(echo)) + echo[4:]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0xC0, 28, 0, 0x4000, 64, 1, 0, source, to)
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return [frame.ljust(60, b"\0") for frame in (arp, switch + own + b"\x08\x00" + head + echo)]


def kind(frame):
    if frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\2" and frame[28:32] == bytes([10, 0, 2, 1]):
        return "arp"
    if frame[12:14] == b"\x08\x00" and frame[23] == 1 and frame[34] == 0 and frame[38:40] == b"NP":
        return "ping"
    return None


def main():
    interface, seconds = sys.argv[1], float(sys.argv[2])
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    sock.bind((interface, 3))
    counts = dict.fromkeys(["sent", "arp", "ping"], 0)
    due = time.monotonic()
    end = due + seconds
    while (now := time.monotonic()) < end + 0.5:
        if now >= due and due < end:
            for frame in questions():
                sock.send(frame)
            counts["sent"] += 1
            due += EACH
        left = max(0, due - time.monotonic()) if due < end else 0.05
        if select.select([sock], [], [], left)[0]:
            frame, address = sock.recvfrom(16384)
            if address[2] != socket.PACKET_OUTGOING and (name := kind(frame)):
                counts[name] += 1
    print(json.dumps(counts))


main()
