"""Hosts that speak PFC over a raw socket: a sender that obeys it, and a receiver that pauses.

    pfc_hosts.py send IFACE SRC_MAC GATEWAY_MAC SECONDS
    pfc_hosts.py receive IFACE SRC_MAC SECONDS PAUSE_FROM

The sender sends numbered UDP datagrams of 1,000 bytes, 8 Mb/s with DSCP 26 and 1 Mb/s with DSCP 0, for SECONDS, and longer until a pause has
ended. The receiver counts what comes, and PAUSE_FROM seconds after the first datagram pauses priority 3, refreshed every 50 ms. It ends the
pause with a time of 0 once a line came on standard input and priority 3 is silent: SILENT datagrams of the other priority came in a row. It
stops when nothing came for two seconds after that, or after SECONDS. Both print what they saw as JSON. Standard library only.
"""
import json
import select
import socket
import struct
import sys
import time

from packets import checksum, mac

CONTROL = 0x8808
QUANTUM = 512 / 100e6  # of the 100 Mb/s that the switches' ports are configured to
LENGTH = 1000
SILENT = 30


def raw(interface, protocol):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    # SO_RCVBUFFORCE: a busy machine may keep us from our core for long, and that is not the switch's loss.
    sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    sock.bind((interface, protocol))
    return sock


def header(dscp, port):
    """Returns IPv4 and UDP headers from 10.0.1.2 to 10.0.2.2, ECN-capable."""
    ip = bytearray(
        struct.pack("!BBHHHBBH4s4s", 0x45, dscp << 2 | 2, LENGTH - 14, 0, 0x4000, 64, 17, 0,
                    bytes([10, 0, 1, 2]), bytes([10, 0, 2, 2])))
    struct.pack_into("!H", ip, 10, checksum(bytes(ip)))
    return bytes(ip) + struct.pack("!HHHH", port, port, LENGTH - 34, 0)


def send(interface, source, gateway, seconds):
    control, out = raw(interface, CONTROL), raw(interface, 0)
    control.setblocking(False)
    ethernet = mac(gateway) + mac(source) + b"\x08\x00"
    flows = [
        {"head": ethernet + header(26, 7003), "rate": 8e6 / 8, "sent": 0, "due": 0.0, "class": 3},
        {"head": ethernet + header(0, 7000), "rate": 1e6 / 8, "sent": 0, "due": 0.0, "class": 0},
    ]
    filler = bytes(LENGTH - 14 - 28 - 4)
    until, xoffs, xons, held, longest, paused_at, last = [0.0] * 8, 0, 0, 0.0, 0.0, None, 0.0
    start = now = time.monotonic()
    for flow in flows:
        flow["due"] = now
    while now < start + seconds or xons == 0 and now < start + 10 * seconds:
        try:
            while True:
                frame = control.recv(128)
                opcode, enable = struct.unpack_from("!HH", frame, 14)
                if opcode != 0x0101:
                    continue
                for n in range(8):
                    if enable & 1 << n:
                        (quanta,) = struct.unpack_from("!H", frame, 18 + 2 * n)
                        until[n] = time.monotonic() + quanta * QUANTUM
                        xoffs, xons = xoffs + (quanta > 0), xons + (quanta == 0)
        except BlockingIOError:
            pass
        now = time.monotonic()
        for flow in flows:
            if until[flow["class"]] > now:
                if flow["class"] == 3:
                    paused_at = paused_at or now
                flow["due"] = now
                continue
            if flow["class"] == 3 and paused_at:
                held, longest, paused_at, last = held + now - paused_at, max(longest, now - paused_at), None, now
            # Time lost to the scheduler is not made up for by a flood.
            flow["due"] = max(flow["due"], now - 0.005)
            burst = 8
            while flow["due"] <= now and burst:
                out.send(flow["head"] + struct.pack("!I", flow["sent"]) + filler)
                flow["sent"] += 1
                flow["due"] += (LENGTH + 24) / flow["rate"]
                burst -= 1
        time.sleep(0.0002)
    print(json.dumps({"sent": [flow["sent"] for flow in flows], "xoffs": xoffs, "xons": xons, "held_s": held,
                      "longest_s": longest, "resumed_at_s": last - start if last else None}))


def receive(interface, source, seconds, pause_from):
    data, control = raw(interface, 0x0800), raw(interface, 0)
    data.settimeout(0.01)

    def pause(quanta):
        times = struct.pack("!8H", *(quanta if n == 3 else 0 for n in range(8)))
        frame = mac("01:80:c2:00:00:01") + mac(source) + struct.pack("!HHH", CONTROL, 0x0101, 1 << 3) + times
        control.send(frame.ljust(60, b"\0"))

    first, next_pause, ended, others = None, None, False, 0
    counts = {port: {"got": 0, "next": 0, "disorder": 0, "paused": 0} for port in (7003, 7000)}
    start = last = time.monotonic()
    while (now := time.monotonic()) < start + seconds and not (ended and now > last + 2):
        if first and not ended and now >= first + pause_from:
            if others >= SILENT and select.select([sys.stdin], [], [], 0)[0]:
                pause(0)
                ended, last = True, now
            elif next_pause is None or now >= next_pause:
                pause(0xFFFF)
                next_pause = now + 0.05
        try:
            frame = data.recv(2048)
        except TimeoutError:
            continue
        if len(frame) < 46 or frame[23] != 17:
            continue
        port, (number,) = struct.unpack_from("!H", frame, 36)[0], struct.unpack_from("!I", frame, 42)
        if port not in counts:
            continue
        first = first or now
        count = counts[port]
        last = now
        count["got"] += 1
        count["disorder"] += number != count["next"]
        count["next"] = number + 1
        if next_pause is None or ended:
            continue
        # Frames in flight come after the pause was sent; one that comes after a silence was not held.
        if port == 7000 or others >= SILENT:
            count["paused"] += 1
            others += 1
        else:
            others = 0
    print(json.dumps({"lossless": counts[7003], "lossy": counts[7000]}))


if __name__ == "__main__":
    role, rest = sys.argv[1], sys.argv[2:]
    if role == "send":
        send(rest[0], rest[1], rest[2], float(rest[3]))
    else:
        receive(rest[0], rest[1], float(rest[2]), float(rest[3]))
