"""Two boxes at one edge, data and answers of a connection by one or the other: before and after npcc-feed connects them, and after one is killed.

    demo_pair.py PROGRAMS OUT

PROGRAMS is the folder of npcc-switch and npcc-feed, OUT gets configurations, logs and what the hosts saw. Needs root: the links are in a network
namespace of its own.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "tests/peer"))
from fleet_hosts import numbers  # noqa: E402

CONNECTIONS = 64
BOXES = ("edge-1", "edge-2")
# Every pair of paths for a quarter of the connections.
DATA, ANSWERS = [0, 1], [0, 0, 1, 1]
CONFIG = """version: 1
dpdk: {{ eal_args: ["--no-pci", "--in-memory"] }}
cores: {{ control: 0, workers: [1], idle: adaptive }}
ports:
  - {{ name: dc0, device: "net_af_packet0,iface={near},blocksz=65536,framesz=2048,framecnt=1024", mac: "02:00:00:00:01:01", mtu: 1500,
      addresses: [10.0.1.1/24] }}
  - {{ name: wan0, device: "net_af_packet1,iface={far},blocksz=65536,framesz=2048,framecnt=1024", mac: "02:00:00:00:02:01", mtu: 1500,
      speed: 10M, addresses: [10.0.2.1/24], npcc: {{ queues: [3] }} }}
neighbors:
  - {{ address: 10.0.1.3, port: dc0, mac: "02:00:00:00:01:03" }}
  - {{ address: 10.0.2.2, port: wan0, mac: "02:00:00:00:02:02" }}
qos: {{ profile: roce-semi-lossless }}
buffer: {{ pool: 32MB }}
npcc:
  evidence: foreign      # what the peer saw counts, below all that this box saw
  tick: 1ms              # two boxes and the hosts share two cores here
  recovery: 4ms
  shallow: 20KB
  deep: 100KB
  gate: off
  hosts: {{ answering: [10.0.1.0/24] }}
  cnp: {{ earned: 1KB }}
telemetry: {{ socket: {socket} }}
"""


def run(*words):
    subprocess.run(words, check=True)


class Demo:
    def __init__(self, programs, out):
        self.programs, self.out = programs, out
        self.space = f"npcc-demo-{os.getpid()}"
        self.links = [f"{end}{os.getpid()}" for end in ("dca", "wana", "dcb", "wanb")]
        self.running = []
        self.table = []

    def start(self, name, *words):
        log = open(self.out / f"{name}.log", "w")
        self.running.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT))
        return self.running[-1]

    def wait(self, what, holds):
        until = time.monotonic() + 60
        while not holds():
            if time.monotonic() > until:
                sys.exit(f"error: not within a minute: {what}; the logs are in {self.out}")
            time.sleep(0.1)

    def wire(self):
        run("ip", "netns", "add", self.space)
        for link in self.links:
            run("ip", "link", "add", link, "type", "veth", "peer", "name", f"h{link}", "netns", self.space)
            run("ip", "link", "set", link, "up")
            run("ip", "-n", self.space, "link", "set", f"h{link}", "up")

    def boxes(self):
        self.sockets = [self.out / f"{name}.sock" for name in BOXES]
        self.switches = []
        for name, socket, near, far in zip(BOXES, self.sockets, self.links[::2], self.links[1::2]):
            config = self.out / f"{name}.yaml"
            config.write_text(CONFIG.format(near=near, far=far, socket=socket))
            self.switches.append(self.box(name, config, socket))

    def box(self, name, config, socket):
        """Starts a switch. The number of a port's socket group is made of its process id, and may be taken: then it is started again."""
        for _ in range(5):
            switch = self.start(name, self.programs / "npcc-switch", "run", "-c", config)
            forwards = lambda: all(worker["loops"] > 0 for worker in self.show(socket, "workers") or [{"loops": 0}])
            self.wait(f"{name} forwards", lambda: switch.poll() is not None or forwards())
            if switch.poll() is None:
                return switch
        sys.exit(f"error: {name} does not start: {self.out / name}.log")

    def show(self, socket, *what):
        words = [self.programs / "npcc-switch", "show", *what, "--json", "--socket", socket]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def connect(self):
        log = self.out / "feeds.log"
        self.start("feeds", self.programs / "npcc-feed", "trial", "--first", self.sockets[0], "--second", self.sockets[1])
        self.wait("both feeds have the other's ends", lambda: all(f"{name}:equal" in log.read_text() for name in BOXES))

    def play(self, *phases):
        """Has the hosts send. A phase: its name, its seconds, boxes of data and of answers, and what is done before the next, while they go on."""
        of = lambda boxes: ",".join(map(str, boxes)) or "-"
        words = [f"--phase={seconds}:{of(data)}:{of(answers)}" for _, seconds, data, answers, _ in phases]
        hosts = subprocess.Popen(["ip", "netns", "exec", self.space, "/usr/bin/python3", root / "tests/peer/fleet_hosts.py", "--connections", str(CONNECTIONS),
                                  *words, *(f"h{link}" for link in self.links)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.running.append(hosts)
        for stage, _, data, _, then in phases:
            self.note(stage, data, json.loads(hosts.stdout.readline()))
            if then:
                then()
                hosts.stdin.write("\n")
                hosts.stdin.flush()
        hosts.communicate()

    def note(self, stage, data, seen):
        """Notes what each box that runs knew and did."""
        with open(self.out / "hosts.jsonl", "a") as log:
            print(json.dumps({"stage": stage, "seen": seen}), file=log)
        for at, (name, socket) in enumerate(zip(BOXES, self.sockets)):
            if self.switches[at].poll() is not None:
                continue
            senders = {receiver: sender for n in range(CONNECTIONS) if data[n % len(data)] == at for sender, receiver in [numbers(n)]}
            flows = [flow for flow in self.show(socket, "flows", "--top", "1000") if flow["dest_qp"] in senders and flow["evidence"] != "none"]
            cnps = {int(pair): count for pair, (count, _) in seen[at]["cnps"].items()}
            wrong = sum(count for pair, count in cnps.items() if pair not in senders.values())
            foreign = sum(flow["evidence"] == "foreign" for flow in flows)
            self.table.append((stage, name, len(senders), len(flows), foreign, len(cnps), sum(cnps.values()), wrong))

    def kill_first(self):
        self.switches[0].kill()
        self.switches[0].wait()

    def print(self):
        head = ("", "box", "connections", "sender known", "of these by the peer", "signalled", "CNPs", "to a wrong queue pair")
        rows = [head, *self.table]
        widths = [max(len(str(row[at])) for row in rows) for at in range(len(head))]
        for row in rows:
            print("  ".join(str(cell).ljust(width) if at < 2 else str(cell).rjust(width) for at, (cell, width) in enumerate(zip(row, widths))))

    def end(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait()
        for words in [("ip", "netns", "del", self.space), *(("ip", "link", "del", link) for link in self.links)]:
            subprocess.run(words, stderr=subprocess.DEVNULL)


def main():
    programs, out = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    demo = Demo(programs, out)
    try:
        demo.wire()
        demo.boxes()
        demo.play(("each for itself", 2, DATA, ANSWERS, None))
        demo.connect()
        demo.play(("as a pair", 2, DATA, ANSWERS, demo.kill_first), ("edge-1 killed", 1, [1], [], None))
        demo.print()
    finally:
        demo.end()


main()
