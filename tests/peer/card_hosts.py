"""Hosts around a switch whose ports are cards played by a double: numbered frames through pairs of ports, both ways at once.

    card_hosts.py < ORDERS

ORDERS is JSON: `ways`, each with `into` and `out` (interfaces), `gateway` and `source` (MAC addresses), `from` and `to` (IPv4 addresses) and
`sizes` (IPv4 packets, in bytes), and `quanta` of the pauses of priority 3 that the receiver sends; `frames` a way; `window`, frames under way
at most; `dscp`; `patience`, seconds without an arrival after which the rest counts as lost; `pause`: seconds from pause to pause, or null for
none. Prints for each way what was sent, came, came out of order or damaged, and the pauses that its receiver sent and heard. Standard library
only.
"""
import json
import socket
import struct
import sys
import time

from packets import checksum, mac

FLOWS = 16
PATTERN = bytes(n * 7 & 0xFF for n in range(10_240))
CONTROL = bytes.fromhex("0180c2000001")


def raw(interface, protocol):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    # SO_RCVBUFFORCE, SO_SNDBUFFORCE: a busy machine may keep us from our core for long.
    sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
    sock.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)
    sock.bind((interface, protocol))
    sock.setblocking(False)
    return sock


class Way:
    def __init__(self, order, orders):
        self.frames, self.sizes = orders["frames"], order["sizes"]
        self.out, self.into = raw(order["into"], 0), raw(order["out"], 3)
        self.source = mac(order["source"])
        self.ethernet = mac(order["gateway"]) + self.source + b"\x08\x00"
        self.tos, self.ends = orders["dscp"] << 2 | 2, [socket.inet_aton(order[end]) for end in ("from", "to")]
        self.quanta, self.last = order["quanta"], [-1] * FLOWS
        self.sent = self.came = self.disorder = self.damaged = self.pauses = self.heard = 0

    def frame(self, number):
        size = self.sizes[number % len(self.sizes)]
        ip = bytearray(struct.pack("!BBHHHBBH4s4s", 0x45, self.tos, size, 0, 0x4000, 64, 17, 0, *self.ends))
        struct.pack_into("!H", ip, 10, checksum(bytes(ip)))
        udp = struct.pack("!HHHHI", 7000 + number % FLOWS, 7000, size - 20, 0, number)
        return self.ethernet + bytes(ip) + udp + PATTERN[number % 256:][:size - 32]

    def send(self, window):
        while self.sent < self.frames and self.sent - self.came < window:
            try:
                self.out.send(self.frame(self.sent))
            except (BlockingIOError, OSError):
                return
            self.sent += 1

    def receive(self):
        any_came = False
        while True:
            try:
                data, address = self.into.recvfrom(16_384)
            except BlockingIOError:
                return any_came
            self.heard += address[2] != socket.PACKET_OUTGOING and data[12:14] == b"\x88\x08"
            if address[2] == socket.PACKET_OUTGOING or data[12:14] != b"\x08\x00" or data[26:34] != self.ends[0] + self.ends[1]:
                continue
            any_came = True
            (size,), (number,) = struct.unpack_from("!H", data, 16), struct.unpack_from("!I", data, 42)
            whole = size == self.sizes[number % len(self.sizes)] and data[22] == 63
            self.damaged += not whole or data[46:14 + size] != PATTERN[number % 256:][:size - 32]
            self.disorder += number <= self.last[number % FLOWS]
            self.last[number % FLOWS] = number
            self.came += 1

    def pause(self):
        self.pauses += 1
        self.into.send(CONTROL + self.source + struct.pack("!HHH8H", 0x8808, 0x0101, 1 << 3, 0, 0, 0, self.quanta, 0, 0, 0, 0) + bytes(26))


def main():
    orders = json.load(sys.stdin)
    ways = [Way(order, orders) for order in orders["ways"]]
    pause, began = orders["pause"], time.monotonic()
    progress, paused = began, began
    while any(way.came < way.frames for way in ways):
        for way in ways:
            way.send(orders["window"])
        came = [way.receive() for way in ways]
        now = time.monotonic()
        if any(came):
            progress = now
        elif now - progress > orders["patience"]:
            break
        else:
            time.sleep(0.0002)
        if pause and now - paused > pause:
            paused = now
            for way in ways:
                way.pause()
    counts = "sent", "came", "disorder", "damaged", "pauses", "heard"
    result = [{count: getattr(way, count) for count in counts} for way in ways]
    print(json.dumps({"ways": result, "seconds": time.monotonic() - began}))


main()
