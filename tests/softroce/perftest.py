"""Runs one transfer between the guests by perftest, and reads the queue pairs it reports."""
import re
from dataclasses import dataclass

from machine import GuestError

DSCP_ROCE = 106     # traffic class: DSCP 26, ECT(0)
VERBS = {"write": "ib_write_bw", "read": "ib_read_bw", "send": "ib_send_bw"}
PORT = 18515


@dataclass(frozen=True)
class Transfer:
    verb: str
    qps: int = 1
    mtu: int = 1024
    version: int = 4
    cm: bool = False        # rdma_cm sets the connection up (-R)

    def __str__(self):
        return f"{self.verb + (' -R' if self.cm else ''):<9} {self.qps} QP  MTU {self.mtu:<4}  IPv{self.version}"


@dataclass(frozen=True)
class Pair:
    """A flow of data: its ends' addresses and queue pairs."""
    src: str
    dst: str
    dest_qp: int
    sender_qp: int


def qpns(text, end):
    return [int(number, 16) for number in re.findall(rf"^ {end} address: .*?QPN (0x[0-9a-f]+)", text, re.M)]


def transfer(what, guests, iterations, size=65536, patience=120):
    """Runs it so that the data go from guest 1 to guest 2; returns the pairs of its flows and MB/s."""
    sender, receiver = guests
    # READ: the receiver of data is the client that requests them.
    client, server = (receiver, sender) if what.verb == "read" else (sender, receiver)
    common = f"timeout {patience} {VERBS[what.verb]} -F -d rxe0 -i 1 -q {what.qps} -m {what.mtu} -s {size} -n {iterations} -u 20 -p {PORT}"
    common += f" -R -T {DSCP_ROCE}" if what.cm else f" --tclass={DSCP_ROCE}"
    server.check(f"{common} -x {server.gid(what.version)} > /tmp/server.log 2>&1 < /dev/null &")
    # perftest's output is lazy in a file: ask the kernel whether it listens.
    listens = "rdma resource show cm_id | grep -q LISTEN" if what.cm else f"cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{PORT:04X} .* 0A '"
    server.check(f"i=0; until {listens} || [ $i -ge 400 ]; do i=$((i+1)); sleep 0.1; done")
    address = server.address(4)     # of the talk before; the data follow the GID
    said, code = client.run(f"{common} -x {client.gid(what.version)} {address} < /dev/null 2>&1", patience + 20)
    heard, _ = server.run("wait; cat /tmp/server.log", patience + 20)
    if code:
        raise GuestError(f"{what}: the client ended with {code}\n{said}\n--- the server:\n{heard}")
    local, remote = qpns(said, "local"), qpns(said, "remote")
    if len(local) != what.qps or len(remote) != what.qps:
        raise GuestError(f"{what}: perftest names {len(local)} and {len(remote)} queue pairs\n{said}")
    if what.verb == "read":
        local, remote = remote, local
    src, dst = sender.address(what.version), receiver.address(what.version)
    speed = re.findall(rf"^ {size} +\d+ +[\d.]+ +([\d.]+)", said, re.M)
    if not speed:
        raise GuestError(f"{what}: no result\n{said}")
    return {Pair(src, dst, there, here) for here, there in zip(local, remote)}, float(speed[0])
