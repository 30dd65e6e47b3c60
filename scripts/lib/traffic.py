"""Frames and captures for the forwarders of bench_peers.py: RoCEv2 flows from 10.0.1.3, and what is mixed among them.

Shuffled means an order drawn from a fixed seed, so that every forwarder and every build gets the same one.
"""
import ipaddress
import random
import struct
import zlib

DATA, ACK = 0x0A, 0x11
OURS, SENDER, NEXT = "020000000101", "020000000103", "020000000202"
WAN = "020000000201"
ROCE_TOS = 0x6A  # DSCP 26, ECT(0)
UDP, TCP = 17, 6


def checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(flow, size, *, net=2, low=None, tos=ROCE_TOS, opcode=DATA, protocol=UDP, v6=False, tag=None, back=False):
    """A frame of `size` bytes of a flow; `back` goes from the receiver to the sender. `protocol` TCP, or `opcode` None, is no RoCE."""
    low = flow + 1 if low is None else low
    head = 14 + (40 if v6 else 20) + (4 if tag is not None else 0)
    if opcode is None or protocol == TCP:
        body = bytes([0x50]) * (size - head - 8)
        ports = (49152 + flow, 443 if protocol == TCP else 3784)
    else:
        qp = 0x11 + flow + (0x1000 if back else 0)
        body = bytes([opcode, 0x40, 0xFF, 0xFF, 0]) + qp.to_bytes(3, "big") + bytes(4)
        body += bytes(size - head - 8 - len(body))
        ports = (49152 + flow, 4791)
    layer4 = struct.pack(">HHHH", *ports, 8 + len(body), 0) + body
    if v6:
        ends = [ipaddress.ip_address("2001:db8:1::3").packed, ipaddress.ip_address(f"2001:db8:{net}::{low:x}").packed]
    else:
        ends = [bytes([10, 0, 1, 3]), bytes([10, 0, net, low])]
    src, dst = reversed(ends) if back else ends
    if v6:
        layer3 = struct.pack(">IHBB", 6 << 28 | tos << 20, len(layer4), protocol, 64) + src + dst
    else:
        layer3 = struct.pack(">BBHHHBBH4s4s", 0x45, tos, 20 + len(layer4), 0, 0x4000, 64, protocol, 0, src, dst)
        layer3 = layer3[:10] + struct.pack(">H", checksum(layer3)) + layer3[12:]
    if opcode is not None and protocol != TCP:
        whole = layer3 + layer4
        whole = whole[:-4] + icrc(whole[:-4], v6)
        layer3, layer4 = whole[: len(layer3)], whole[len(layer3) :]
    addresses = bytes.fromhex(WAN + NEXT if back else OURS + SENDER)
    tags = b"" if tag is None else struct.pack(">HH", 0x8100, tag)
    ethernet = addresses + tags + (b"\x86\xdd" if v6 else b"\x08\x00")
    whole = ethernet + layer3 + layer4
    assert len(whole) == size, (len(whole), size)
    return whole


def icrc(packet, v6):
    """The invariant CRC of a plain IP packet up to there: what may change on the way counts as ones."""
    changing = (0, 1, 2, 3, 7, 46, 47, 52) if v6 else (1, 8, 10, 11, 26, 27, 32)
    packet = bytearray(packet)
    version = packet[0]
    for place in changing:
        packet[place] = 0xFF
    if v6:
        packet[0] = version | 0x0F
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(packet)))


def shuffled(frames):
    frames = list(frames)
    random.Random(16).shuffle(frames)
    return frames


def write(path, frames):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, one in enumerate(frames):
            out.write(struct.pack("<IIII", 0, number, len(one), len(one)) + one)


def capture(path, size, flows=64, net=2):
    """Data frames of `size` bytes to 10.0.`net`.0/24: UDP to 4791, SEND ONLY to QPs 0x11.., one flow each."""
    write(path, [frame(flow, size, net=net) for flow in range(flows)])
