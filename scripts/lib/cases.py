"""The rows of scripts/bench-peers: traffic, and what a forwarder must be told to carry it."""
import dataclasses

from traffic import ACK, DATA, ROCE_TOS, TCP, capture, frame, shuffled, write

FLOWS = range(64)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    """What stands in the table."""
    text: str
    """Longest frame."""
    size: int
    """Frames that come in by the first port, and by the second one if the traffic goes two ways."""
    forth: object
    back: object = None
    """Of ours: routes, neighbours, keys of the first and the second port, a third port."""
    routes: str = "{ prefix: 10.0.2.0/24, via: 10.0.12.2 }"
    neighbors: str = '{ address: 10.0.12.2, port: wan0, mac: "02:00:00:00:02:02" }'
    first: str = "addresses: [10.0.1.1/24]"
    second: str = "addresses: [10.0.12.1/24]"
    third: bool = False
    speed: str = "400G"
    """Arguments of `run`, for ours."""
    arguments: tuple = ()
    """Whether a rule for OVS-DPDK does the same, and what it matches."""
    ovs: str = "ip"
    """Whether DPDK's l3fwd carries the same."""
    l3fwd: bool = False
    """Goal and floor, in ns over testpmd: shares of what commit 7c7eca1 took on an AMD EPYC of 2.6 GHz."""
    goal: tuple = ()

    def captures(self, folder):
        """Writes the sources' captures, and returns how many there are."""
        write(f"{folder}/{self.name}.pcap", self.forth())
        if self.back:
            write(f"{folder}/{self.name}-back.pcap", self.back())
        return 2 if self.back else 1


def data(size, **more):
    return lambda: [frame(flow, size, **more) for flow in FLOWS]


def plain(size, **more):
    return Case(str(size), f"{size} B data", size, data(size), **more)


def returning(size, opcode):
    return lambda: [frame(flow, size, opcode=opcode, back=True) for flow in FLOWS]


SENDER = '{ address: 10.0.1.3, port: dc0, mac: "02:00:00:00:01:03" }'


def two_way(name, text, size, opcode, back):
    return Case(name, text, size, data(size), returning(back, opcode), ovs="",
                neighbors=f"{Case.neighbors}, {SENDER}")


def three_classes():
    return shuffled(one for flow in FLOWS for one in (
        frame(flow, 62), frame(flow, 62, tos=0, protocol=TCP), frame(flow, 62, tos=48 << 2, opcode=None)))


CASES = [
    plain(62, l3fwd=True, goal=(11.8, 13.6)),
    plain(1082, l3fwd=True, goal=(11.9, 13.7)),
    plain(4154),
    Case("data-acks", "62 B data and ACKs, 1:1", 62, lambda: shuffled(frame(flow, 62, opcode=opcode) for flow in FLOWS for opcode in (DATA, ACK)), goal=(15.9, 18.4)),
    Case("three-classes", "RoCE, TCP, DSCP 48", 62, three_classes, goal=(18.3, 21.1)),
    Case("four-ecn", "the four ECN codepoints", 62, lambda: shuffled(frame(flow, 62, tos=ROCE_TOS & ~3 | ecn) for flow in FLOWS for ecn in range(4))),
    Case("two-ports", "two egress ports", 62, lambda: shuffled(frame(flow, 62, low=low + flow) for flow in FLOWS for low in (1, 128)), ovs="", third=True, goal=(17.2, 19.9),
         routes="{ prefix: 10.0.2.0/25, via: 10.0.12.2 }, { prefix: 10.0.2.128/25, via: 10.0.13.2 }",
         neighbors=f'{Case.neighbors}, {{ address: 10.0.13.2, port: wan1, mac: "02:00:00:00:02:03" }}'),
    Case("ecmp-4", "ECMP over four next hops", 62, lambda: shuffled(data(62)()), ovs="", goal=(16.0, 18.9),
         routes="{ prefix: 10.0.2.0/24, via: [10.0.12.2, 10.0.12.3, 10.0.12.4, 10.0.12.5] }",
         neighbors=", ".join(f'{{ address: 10.0.12.{n}, port: wan0, mac: "02:00:00:00:02:0{n}" }}' for n in range(2, 6))),
    Case("ipv6", "IPv6, 82 B", 82, data(82, v6=True), ovs="ipv6", l3fwd=True, goal=(17.8, 21.9), routes='{ prefix: "2001:db8:2::/64", via: "2001:db8:12::2" }',
         neighbors='{ address: "2001:db8:12::2", port: wan0, mac: "02:00:00:00:02:02" }',
         first='addresses: ["2001:db8:1::1/64"]', second='addresses: ["2001:db8:12::1/64"]'),
    Case("vlan", "VLAN-tagged, 66 B", 66, data(66, tag=100), goal=(17.9, 22.4), routes="{ prefix: 10.0.2.0/24, via: 10.0.112.2 }",
         neighbors='{ address: 10.0.112.2, port: wan0, mac: "02:00:00:00:02:02" }',
         first="vlans: [ { id: 100, addresses: [10.0.1.1/24] } ]", second="vlans: [ { id: 100, addresses: [10.0.112.1/24] } ]"),
    two_way("two-way-62-acks", "two ways: 62 B data, ACKs", 62, ACK, 62),
    two_way("two-way-1082-acks", "two ways: 1,082 B data, ACKs", 1082, ACK, 62),
    two_way("two-way-1082-data", "two ways: 1,082 B data, data", 1082, DATA, 1082),
]

# What is told in cycles of our own by stage, since the port and not the core sets the pace. Wire bytes are the frame's and 24.
STAGED = [
    Case("paced", "1,082 B at half of a port of 25G", 1082, data(1082), speed="25G", arguments=("--timetable", f"1,0,{(1082 + 24) * 8 * 1000 * 10 // 125}")),
    Case("standing", "1,082 B into a queue that stands, 40G", 1082, data(1082), speed="40G"),
]
