"""Reads the CNPs of a capture with scapy, which shares no code with the switch, and prints what it finds as JSON.

usage: verify_cnps.py CAPTURE [CAPTURE ...]

For each CNP: addresses, TOS, TTL, ports, BTH fields, VLAN, the 16 reserved bytes, and whether the ICRC, the IPv4 header checksum
and (IPv6) the UDP checksum are those scapy computes.
"""
import json
import sys

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q
from scapy.utils import RawPcapReader, checksum
from scapy.layers.l2 import Ether


def udp6_checksum_ok(ip, udp):
    pseudo = bytes(ip)[8:40] + len(udp).to_bytes(4, "big") + bytes([0, 0, 0, 17])
    return checksum(pseudo + bytes(udp)) == 0 and udp.chksum != 0


def read(path):
    found = []
    for raw, _ in RawPcapReader(path):
        frame = Ether(raw)
        if BTH not in frame or frame[BTH].opcode != 0x81:
            continue
        ip = frame[IPv6] if IPv6 in frame else frame[IP]
        udp, bth = frame[UDP], frame[BTH]
        payload = bytes(udp.payload)
        if isinstance(ip, IP):
            header = bytes(ip)[: ip.ihl * 4]
            sums = checksum(header) == 0 and udp.chksum == 0
            tos, ttl = ip.tos, ip.ttl
        else:
            sums = udp6_checksum_ok(ip, udp)
            tos, ttl = ip.tc, ip.hlim
        icrc = bth.compute_icrc(payload[:-4])
        found.append({
            "src": ip.src, "dst": ip.dst, "tos": tos, "ttl": ttl,
            "sport": udp.sport, "dport": udp.dport, "len": len(raw),
            "vlan": frame[Dot1Q].vlan if Dot1Q in frame else None,
            "pcp": frame[Dot1Q].prio if Dot1Q in frame else None,
            "dqpn": bth.dqpn, "becn": bth.becn, "fecn": bth.fecn, "migreq": bth.migreq,
            "pkey": bth.pkey, "psn": bth.psn, "ackreq": bth.ackreq,
            "zeros": payload[12:28] == bytes(16),
            "icrc_ok": icrc == payload[-4:],
            "checksums_ok": bool(sums),
            "eth_src": frame.src, "eth_dst": frame.dst,
        })
    return found


if __name__ == "__main__":
    print(json.dumps([read(path) for path in sys.argv[1:]]))
