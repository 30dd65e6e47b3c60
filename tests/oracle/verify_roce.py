"""Reads a capture of RoCEv2 with scapy, which shares no code with the switch, and prints what it finds as JSON.

usage: verify_roce.py CAPTURE

A list of groups of equal frames with their count: opcode, addresses, queue pair, port, TOS, VLAN, length, and whether ICRC, IPv4
checksum and (IPv6) UDP checksum are those scapy computes. `gaps` counts breaks in the sequence numbers, per queue pair and kind of packet.
"""
import collections
import json
import sys

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.utils import RawPcapReader, checksum


def main(path):
    groups, last, gaps = collections.Counter(), {}, 0
    for raw, _ in RawPcapReader(path):
        frame = Ether(raw)
        ip = frame[IPv6] if IPv6 in frame else frame[IP]
        udp, bth = frame[UDP], frame[BTH]
        payload = bytes(udp.payload)
        if isinstance(ip, IP):
            sums, tos = checksum(bytes(ip)[: ip.ihl * 4]) == 0 and udp.chksum == 0, ip.tos
        else:
            pseudo = bytes(ip)[8:40] + len(udp).to_bytes(4, "big") + bytes([0, 0, 0, 17])
            sums, tos = checksum(pseudo + bytes(udp)) == 0 and udp.chksum != 0, ip.tc
        if bth.opcode in (0x04, 0x0A, 0x0C, 0x10):
            key = (ip.src, ip.dst, bth.dqpn, bth.opcode in (0x04, 0x0A), bth.opcode if bth.opcode in (0x0C, 0x10) else 0)
            gaps += key in last and bth.psn != (last[key] + 1) % (1 << 24)
            last[key] = bth.psn
        groups[(bth.opcode, ip.src, ip.dst, bth.dqpn, udp.sport, tos, frame[Dot1Q].vlan if Dot1Q in frame else None, len(raw),
                bth.compute_icrc(payload[:-4]) == payload[-4:], bool(sums))] += 1
    names = ["opcode", "src", "dst", "qp", "port", "tos", "vlan", "len", "icrc_ok", "checksums_ok"]
    print(json.dumps({"gaps": gaps, "groups": [dict(zip(names, key), count=count) for key, count in groups.items()]}))


main(sys.argv[1])
