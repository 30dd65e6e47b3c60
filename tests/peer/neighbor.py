"""A neighbour of the switch that sends it what routers and hosts send, and counts the results. Standard library only.

    neighbor.py talk IFACE SECONDS       the host 10.0.2.3: 100 times a second LLDP, ARP, ping, BFD and BGP to 10.0.2.1; counts answers
    neighbor.py hear IFACE SECONDS       the switch's Linux: counts LLDP, BFD and BGP of 10.0.2.3 on its interface
    neighbor.py discover IFACE SECONDS   the host 10.0.1.3: 30 times a second a packet too big for the path to 10.0.2.3; counts ICMP errors
"""
import json
import select
import socket
import struct
import sys
import time

EACH = {"talk": 0.01, "discover": 1 / 30, "hear": 0.05}


def raw(interface):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    sock.bind((interface, 3))
    return sock


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def ip(side, to, protocol, ttl, payload):
    source = bytes([10, 0, side, 3])
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0xC0, 20 + len(payload), 0, 0x4000, ttl, protocol, 0, source, bytes(to))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    macs = bytes([2, 0, 0, 0, side, 1, 2, 0, 0, 0, side, 3])
    return macs + b"\x08\x00" + head + payload


def talk():
    own = bytes([2, 0, 0, 0, 2, 3])
    lldp = bytes.fromhex("0180c200000e") + own + bytes.fromhex("88cc02070402000000020304020731060200780000")
    arp = b"\xff" * 6 + own + bytes.fromhex("08060001080006040001") + own + bytes([10, 0, 2, 3] + [0] * 6 + [10, 0, 2, 1])
    echo = struct.pack("!BBHHH", 8, 0, 0, 0x4e50, 1)
    echo = echo[:2] + struct.pack("!H", checksum(echo)) + echo[4:]
    us = [10, 0, 2, 1]
    bfd = struct.pack("!HHHHI", 49152, 3784, 12, 0, 0)
    bgp = struct.pack("!HHIIBBHHH", 50000, 179, 0, 0, 0x50, 2, 256, 0, 0)
    return [frame.ljust(60, b"\0") for frame in (lldp, arp, ip(2, us, 1, 64, echo), ip(2, us, 17, 255, bfd), ip(2, us, 6, 64, bgp))]


def discover():
    return [ip(1, [10, 0, 2, 3], 17, 64, struct.pack("!HHHH", 49152, 9, 3008, 0) + bytes(3000))]


def kind(frame):
    ether, protocol = frame[12:14], frame[23:24]
    if ether == b"\x88\xcc":
        return "lldp"
    if ether == b"\x08\x06" and frame[20:22] == b"\0\2" and frame[28:32] == bytes([10, 0, 2, 1]):
        return "arp"
    if ether != b"\x08\x00":
        return None
    if protocol == b"\x01" and frame[34] == 0 and frame[38:40] == b"NP":
        return "ping"
    if protocol == b"\x01" and frame[34:36] == b"\x03\x04":
        return "told"
    if protocol == b"\x11" and frame[36:38] == b"\x0e\xc8":
        return "bfd"
    if protocol == b"\x06" and frame[36:38] == b"\x00\xb3":
        return "bgp"
    return None


def main():
    what, interface, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    sock = raw(interface)
    frames = {"talk": talk, "discover": discover, "hear": list}[what]()
    counts = dict.fromkeys(["sent", "lldp", "arp", "ping", "told", "bfd", "bgp"], 0)
    began = time.monotonic()
    # A listener listens from before the others begin until after they end.
    end = began + seconds + (1.5 if what == "hear" else 0)
    due = began + (0 if what == "hear" else 0.5)
    while (now := time.monotonic()) < end + 0.5:
        if frames and now >= due and due < end:
            for frame in frames:
                sock.send(frame)
            counts["sent"] += 1
            due += EACH[what]
        left = max(0, min(due, end + 0.5) - time.monotonic()) if frames and due < end else 0.05
        if select.select([sock], [], [], left)[0]:
            frame, address = sock.recvfrom(16384)
            if address[2] != socket.PACKET_OUTGOING and (name := kind(frame)):
                counts[name] += 1
    print(json.dumps(counts))


main()
