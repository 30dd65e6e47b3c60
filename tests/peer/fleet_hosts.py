"""Hosts on both sides of two boxes: RDMA WRITEs of many connections from one side, their answers from the other, each by one box or the other.

    fleet_hosts.py --connections 64 --phase 2:0,1:0,0,1,1 [--phase 1:1:-] NEAR1 FAR1 NEAR2 FAR2

A phase is SECONDS:DATA:ANSWERS. Connection n sends its data by box `DATA[n % len]` and its answers by box `ANSWERS[n % len]`; `-` sends none.
NEAR and FAR are the interfaces of the hosts toward the first and the second box. The UDP source port is Linux's hash of both queue pairs.

After its time, and what is due in it on a machine that keeps up, each phase prints a line of JSON: by box, data frames `sent` and `received`, and `cnps` by queue pair, each with their number and the
time of the first in s since the phase began; `between` are those that came before it, since the last line. It goes on sending until a line comes on
standard input; the last one ends. Standard library only.
"""
import argparse
import json
import select
import socket
import struct
import sys
import time
import zlib

from packets import checksum

SENDER, RECEIVER = bytes([10, 0, 1, 3]), bytes([10, 0, 2, 2])
MACS = {"near": (bytes.fromhex("020000000101"), bytes.fromhex("020000000103")),
        "far": (bytes.fromhex("020000000201"), bytes.fromhex("020000000202"))}
WRITE_ONLY, ACKNOWLEDGE, CNP = 0x0A, 0x11, 0x81
# Data a second and box: more than its far port takes.
RATE = 8_000
# RETH and data of a WRITE.
PAYLOAD = bytes(16 + 256)


def numbers(n):
    """Queue pairs of sender and receiver of connection n: distinct, as the factors are odd."""
    return (0x10_0000 + n * 7_919) & 0xFF_FFFF, (0x80_0000 + n * 104_729) & 0xFF_FFFF


def port(a, b):
    """UDP source port of Linux's RoCEv2 for a connection of these queue pairs (rdma_calc_flow_label, rdma_flow_label_to_udp_sport)."""
    label = a * b
    label ^= label >> 20
    label ^= label >> 40
    label &= 0xFFFFF
    return (label & 0x3FFF) ^ ((label & 0xFC000) >> 14) | 0xC000


def frame(side, opcode, queue_pair, psn, udp_port, payload):
    """RoCEv2 frame from a host of this side, with ICRC."""
    source, target = (SENDER, RECEIVER) if side == "near" else (RECEIVER, SENDER)
    length = 8 + 12 + len(payload) + 4
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0x6A, 20 + length, 0, 0x4000, 64, 17, 0, source, target)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    udp = struct.pack("!HHHH", udp_port, 4791, length, 0)
    bth = struct.pack("!BBHII", opcode, 0x40, 0xFFFF, queue_pair, 0x8000_0000 | psn)
    # What changes on the way counts as ones (IBTA annex A17.3.3).
    masked = (b"\xff" * 8 + ip[:1] + b"\xff" + ip[2:8] + b"\xff" + ip[9:10] + b"\xff\xff" + ip[12:] + udp[:6] + b"\xff\xff"
              + bth[:4] + b"\xff" + bth[5:])
    icrc = struct.pack("<I", zlib.crc32(masked + payload))
    switch, host = MACS[side]
    return switch + host + b"\x08\x00" + ip + udp + bth + payload + icrc


def raw(interface):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    # SO_RCVBUFFORCE: a busy machine may keep us from our core for long.
    sock.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)
    sock.bind((interface, 3))
    return sock


class Box:
    def __init__(self, near, far):
        self.sockets = {"near": raw(near), "far": raw(far)}
        self.cnps = {}
        self.begin(0)

    def begin(self, now):
        self.start, self.sent, self.received = now, 0, 0
        self.between, self.cnps = self.cnps, {}

    def end(self):
        """Returns what was seen of a phase."""
        seen = {"sent": self.sent, "received": self.received, "cnps": self.cnps, "between": self.between}
        self.cnps = {}
        return seen

    def send(self, side, octets):
        self.sockets[side].send(octets)

    def take(self, side, now):
        octets, address = self.sockets[side].recvfrom(4096)
        if address[2] == socket.PACKET_OUTGOING or octets[12:14] != b"\x08\x00" or len(octets) < 54 or octets[23] != 17:
            return
        opcode, queue_pair = octets[42], int.from_bytes(octets[47:50], "big")
        if side == "far" and opcode == WRITE_ONLY:
            self.received += 1
        if side == "near" and opcode == CNP:
            count, first = self.cnps.get(queue_pair, (0, now - self.start))
            self.cnps[queue_pair] = (count + 1, first)


def listen(boxes, until):
    """Takes frames until this time; what is there already in any case."""
    sockets = {box.sockets[side]: (box, side) for box in boxes for side in ("near", "far")}
    while True:
        left = until - time.monotonic()
        ready = select.select(list(sockets), [], [], max(left, 0))[0]
        for sock in ready:
            box, side = sockets[sock]
            box.take(side, time.monotonic())
        if not ready and left <= 0:
            return


class Hosts:
    def __init__(self, connections, boxes):
        self.connections, self.boxes = connections, boxes
        self.packets, self.last = 0, time.monotonic()

    def send(self, data, answers):
        """Sends as many packets as are due; after a machine stood still there is no flood."""
        now = time.monotonic()
        due = int(min(now - self.last, 0.01) * 2 * RATE)
        self.last = now
        for number in range(self.packets, self.packets + due):
            psn, n = divmod(number, self.connections)
            sender, receiver = numbers(n)
            udp_port = port(sender, receiver)
            by = data[n % len(data)]
            if by is not None:
                self.boxes[by].send("near", frame("near", WRITE_ONLY, receiver, psn & 0xFFFFFF, udp_port, PAYLOAD))
                self.boxes[by].sent += 1
            by = answers[n % len(answers)]
            if by is not None:
                self.boxes[by].send("far", frame("far", ACKNOWLEDGE, sender, psn & 0xFFFFFF, udp_port, b"\x00\x00\x00\x01"))
        self.packets += due
        listen(self.boxes, now + 0.002)

    def phase(self, seconds, data, answers, is_last):
        begin = time.monotonic()
        for box in self.boxes:
            box.begin(begin)
        first = self.packets
        while time.monotonic() - begin < seconds or self.packets - first < 2 * RATE * seconds:
            self.send(data, answers)
        if is_last:
            listen(self.boxes, time.monotonic() + 0.3)
        print(json.dumps([box.end() for box in self.boxes]), flush=True)
        while not is_last and not select.select([sys.stdin], [], [], 0)[0]:
            self.send(data, answers)
        if not is_last:
            sys.stdin.readline()


def phase(text):
    seconds, *boxes = text.split(":")
    data, answers = ([None if box == "-" else int(box) for box in one.split(",")] for one in boxes)
    return float(seconds), data, answers


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--connections", type=int, required=True)
    args.add_argument("--phase", type=phase, action="append", required=True)
    args.add_argument("interfaces", nargs=4)
    args = args.parse_args()
    near1, far1, near2, far2 = args.interfaces
    hosts = Hosts(args.connections, [Box(near1, far1), Box(near2, far2)])
    for at, one in enumerate(args.phase, 1):
        hosts.phase(*one, is_last=at == len(args.phase))


if __name__ == "__main__":
    main()
