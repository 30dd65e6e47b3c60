"""Packet fields, for the hosts of tests."""
import struct


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def checksum(header):
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
