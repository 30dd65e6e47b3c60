"""Reads the ICMP errors of a capture with scapy, which shares no code with the switch, and prints what it finds as JSON.

usage: verify_icmp.py CAPTURE

For each: addresses, type, code, MTU, TTL, VLAN and its priority, length of the IP packet, addresses and TTL of the packet it is about,
how many bytes of that are quoted, and whether all checksums are those scapy computes.
"""
import json
import sys

from scapy.layers.inet import ICMP, IP, IPerror
from scapy.layers.inet6 import IPv6, IPerror6, in6_chksum
from scapy.layers.l2 import Dot1Q, Ether
from scapy.utils import RawPcapReader, checksum


def read(path):
    found = []
    for raw, _ in RawPcapReader(path):
        frame = Ether(raw)
        about = None
        if ICMP in frame and IPerror in frame:
            ip, about, six = frame[IP], frame[IPerror], False
            icmp = bytes(ip)[ip.ihl * 4:ip.len]
            sums = checksum(bytes(ip)[:ip.ihl * 4]) == 0 and checksum(icmp) == 0
            length, ttl = ip.len, ip.ttl
        elif IPv6 in frame and frame[IPv6].nh == 58 and IPerror6 in frame:
            ip, about, six = frame[IPv6], frame[IPerror6], True
            icmp = bytes(ip)[40:40 + ip.plen]
            sums = in6_chksum(58, ip, icmp) == 0
            length, ttl = 40 + ip.plen, ip.hlim
        if about is None:
            continue
        found.append({
            "src": ip.src, "dst": ip.dst, "type": icmp[0], "code": icmp[1],
            "mtu": int.from_bytes(icmp[4:8], "big"), "ttl": ttl, "length": length,
            "vlan": frame[Dot1Q].vlan if Dot1Q in frame else None,
            "pcp": frame[Dot1Q].prio if Dot1Q in frame else None,
            "about": [about.src, about.dst, about.hlim if six else about.ttl],
            "quoted": len(icmp) - 8, "sums_ok": bool(sums),
            "eth_src": frame.src, "eth_dst": frame.dst,
        })
    return found


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1])))
