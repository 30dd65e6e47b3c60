"""Paired runs of forwarders on one core: bench_peers.py NPCC_SWITCH [ROUNDS] [--no-ovs] [--full-table FILE] [ROW...]

Source: a capture of 64 RoCEv2 flows, or of a mix (cases.py), net_pcap infinite_rx. Sink: net_null. Measured: CPU time of the polling thread (from the
scheduler's account) over frames sent in the same interval, so that a preempted thread does not count against itself.

All forwarders are started anew each round, since each start lies elsewhere in memory, and then take turns of half a second; the
others are stopped meanwhile (SIGSTOP). A machine's neighbours come and go in seconds, and cost a program by how much it does. So a
turn of ours is compared with the peer's last before and first after it, and told apart by whether those of testpmd were as fast as it
ever was (to a tenth). That choice does not look at ours.
"""
import contextlib
import ctypes
import glob
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from cases import CASES, STAGED, plain
from traffic import capture  # noqa: F401: others here take it from this file

SETTLE = 1.5
TURNS = 8  # of each forwarder a round
WARM, TURN = 0.03, 0.5  # seconds: to find its caches again, and measured
QUIET = 1.1  # times testpmd's least
LIBC = ctypes.CDLL(None)


def spawn(command, **options):
    """A process that ends with this one, however that ends: one that is stopped holds its memory for ever."""
    pr_set_pdeathsig = 1
    return subprocess.Popen(command, preexec_fn=lambda: LIBC.prctl(pr_set_pdeathsig, signal.SIGKILL), **options)


def thread(pid, name):
    """The scheduler's account of a thread, once it is there."""
    for _ in range(100):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/comm") as comm:
                if name in comm.read():
                    return f"/proc/{pid}/task/{task}/schedstat"
        time.sleep(0.1)
    sys.exit(f"no thread {name} in process {pid}")


def worker(pid, core):
    """The account of the worker on a core, by its name in DPDK 22.11 or since 23.11."""
    names = (f"rte-worker-{core}\n", f"dpdk-worker{core}\n")
    for _ in range(100):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/comm") as comm:
                if comm.read() in names:
                    return f"/proc/{pid}/task/{task}/schedstat"
        time.sleep(0.1)
    sys.exit(f"no worker on core {core} in process {pid}")


def cpu(path):
    with open(path) as account:
        return int(account.read().split()[0])


def of(case):
    """A row; of a number, data frames of that length."""
    return plain(case) if isinstance(case, int) else case


def source(folder, case, number=0):
    return f"net_pcap{number},rx_pcap={folder}/{case.name}{'-back' if number else ''}.pcap,infinite_rx=1"


def sinks(folder, case):
    """The devices behind the first: of traffic two ways, the second one is a source too."""
    return [source(folder, case, 1) if case.back else "net_null0,no-rx=1"]


class Ours:
    name = "npcc-switch"

    def __init__(self, folder, binary, case):
        case = of(case)
        self.socket, self.binary = f"{folder}/s.sock", binary
        config = f"{folder}/ours-{case.name}.yaml"
        third = ""
        if case.third:
            third = """
  - { name: wan1, device: "net_null1,no-rx=1", mac: "02:00:00:00:03:01", mtu: 4200, speed: 400G, addresses: [10.0.13.1/24] }"""
        with open(config, "w") as out:
            out.write(f"""version: 1
dpdk: {{ eal_args: ["--no-pci", "--in-memory"] }}
telemetry: {{ socket: {self.socket} }}
ports:
  - {{ name: dc0, device: "{source(folder, case)}", mac: "02:00:00:00:01:01", mtu: 4200,
      {case.first}, speed: 400G }}
  - {{ name: wan0, device: "{sinks(folder, case)[0]}", mac: "02:00:00:00:02:01", mtu: 4200, speed: {case.speed}, {case.second},
      npcc: {{ enable: true, queues: [3] }} }}{third}
routes: [ {case.routes} ]
neighbors: [ {case.neighbors} ]
buffer: {{ pool: 64MB, lossless_min_frame: 1024 }}
""")
        self.process = spawn([binary, "run", "-c", config, *case.arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(SETTLE)
        self.account = worker(self.process.pid, 1)

    def show(self, what):
        return json.loads(subprocess.check_output([self.binary, "show", what, "--json", "--socket", self.socket]))

    def sent(self):
        return sum(port["tx"]["packets"] for port in self.show("ports"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Testpmd:
    name = "testpmd mac"

    def __init__(self, folder, _binary, case):
        case = of(case)
        self.start([source(folder, case), *sinks(folder, case)], "0@0,1@1", [0, 1] if case.back else [1])

    def start(self, devices, lcores, sinks, *options):
        """Forwards by all threads of `lcores` but the first; what `sinks` (numbers of ports) send is counted."""
        self.sinks = sinks
        self.process = spawn(
            # Its answers would wait in a buffer of their own.
            ["stdbuf", "-oL", "dpdk-testpmd", f"--lcores={lcores}", "--no-pci", "--in-memory", *(f"--vdev={device}" for device in devices),
             "--", "-i", "--forward-mode=mac", "--total-num-mbufs=40000", "--mbuf-size=4400", *options,
             "--auto-start"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(SETTLE)
        self.accounts = [thread(self.process.pid, f"worker-{n}") for n in range(1, lcores.count("@"))]
        self.account = self.accounts[0]

    def sent(self):
        return sum(map(self.sent_by, self.sinks))

    def sent_by(self, port):
        return self.query(f"show port stats {port}")

    def query(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if "TX-packets:" in line:
                return int(line.split("TX-packets:")[1].split()[0])
        sys.exit(f"{self.name} ended")

    def stop(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait()


class L3fwd(Testpmd):
    """DPDK's example of a router (scripts/bench-peers builds it): longest prefix, MAC addresses, TTL. It checks no checksum, drops no expired
    TTL, and has no queue, shared buffer, class, mark or flow table."""
    name = "l3fwd LPM"
    lookup = "lpm"

    def __init__(self, folder, _binary, case):
        case = of(case)
        for family, prefix in (4, "10.0.2.0/24"), (6, "2001:0db8:0002:0000:0000:0000:0000:0000/64"):
            with open(f"{folder}/l3fwd-{family}", "w") as rules:
                rules.write(f"R{prefix} 1\n")
        devices = [source(folder, case), *sinks(folder, case)]
        # One core: net_pcap has one transmit queue. The main thread forwards.
        self.process = spawn(
            ["stdbuf", "-oL", f"{os.environ['PEERS']}/l3fwd", "--lcores=1@1", "--no-pci", "--in-memory", *(f"--vdev={device}" for device in devices),
             "--", "-p", "3", "--parse-ptype", "--config=(0,0,1)", f"--lookup={self.lookup}",
             f"--rule_ipv4={folder}/l3fwd-4", f"--rule_ipv6={folder}/l3fwd-6"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(SETTLE)
        self.account = f"/proc/{self.process.pid}/schedstat"

    def sent(self):
        return self.query("")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class L3fwdFib(L3fwd):
    """The same by the library that looks up 16 addresses at a time."""
    name = "l3fwd FIB"
    lookup = "fib"


class Ovs:
    """A database and a switch of its own in the folder; nothing of the system's is touched."""
    name = "OVS-DPDK"

    def __init__(self, folder, _binary, case):
        case = of(case)
        self.folder = folder
        self.env = dict(os.environ, OVS_RUNDIR=folder, OVS_LOGDIR=folder, OVS_DBDIR=folder, OVS_SYSCONFDIR=folder)
        self.database = f"unix:{folder}/db.sock"
        for stale in ("conf.db", "db.sock", "ovs-vswitchd.pid"):
            if os.path.exists(f"{folder}/{stale}"):
                os.remove(f"{folder}/{stale}")
        self.run("ovsdb-tool", "create", f"{folder}/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env)
        self.db = spawn(["ovsdb-server", f"{folder}/conf.db", f"--remote=p{self.database}"], **quiet)
        time.sleep(0.5)
        self.vsctl("--no-wait", "init")
        self.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true", "other_config:dpdk-lcore-mask=0x1",
                   "other_config:pmd-cpu-mask=0x2", "other_config:dpdk-socket-mem=512", "other_config:dpdk-extra=--no-pci --in-memory")
        self.process = spawn(["/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk", self.database], **quiet)
        time.sleep(1.5)
        self.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev")
        # Its buffers are as long as the port's MTU asks for, and net_pcap's endless source takes no chains.
        mtu = f"mtu_request={max(1500, case.size)}"
        self.vsctl("add-port", "br0", "in0", "--", "set", "Interface", "in0", "type=dpdk", mtu,
                   f"options:dpdk-devargs={source(folder, case)}")
        self.vsctl("add-port", "br0", "out0", "--", "set", "Interface", "out0", "type=dpdk", mtu,
                   "options:dpdk-devargs=net_null0,no-rx=1")
        for port in ("in0", "out0"):
            self.wait_for(port)
        self.run("ovs-ofctl", "add-flow", "br0", f"in_port=in0,{case.ovs},actions=mod_dl_src:02:00:00:00:02:01,mod_dl_dst:02:00:00:00:02:02,dec_ttl,output:out0")
        time.sleep(SETTLE)
        self.account = thread(self.process.pid, "pmd-c01")

    def run(self, *command):
        return subprocess.check_output(command, env=self.env, text=True, stderr=subprocess.DEVNULL)

    def vsctl(self, *words):
        return self.run("ovs-vsctl", f"--db={self.database}", *words)

    def wait_for(self, port):
        """A flow that names a port is refused before the switch has made it."""
        for _ in range(100):
            number = self.vsctl("--if-exists", "get", "Interface", port, "ofport").strip()
            if number.isdigit() and int(number) > 0:
                return
            time.sleep(0.1)
        sys.exit(f"OVS did not make port {port}: " + self.vsctl("get", "Interface", port, "error").strip())

    def sent(self):
        # The interfaces' own statistics are seconds old; the polling thread's are not.
        socket = glob.glob(f"{self.folder}/*.{self.process.pid}.ctl")[0]
        shown = self.run("ovs-appctl", "-t", socket, "dpif-netdev/pmd-stats-show")
        thread = shown.split("core_id 1:")[1]
        return int(thread.split("packets received:")[1].split()[0])

    def stop(self):
        for process in (self.process, self.db):
            process.terminate()
            process.wait()


class Turns:
    """The turns of all forwarders, in the order they were taken: (forwarder, ns a frame)."""

    def __init__(self):
        self.rounds = []

    def take(self, forwarders, folder, binary, case):
        """One round."""
        with contextlib.ExitStack() as ends:
            running = []
            for forwarder in forwarders:
                one = forwarder(folder, binary, case)
                ends.callback(end, one)
                os.kill(one.process.pid, signal.SIGSTOP)
                running.append(one)
            self.rounds.append([(type(one), turn(one)) for _ in range(TURNS) for one in running])

    def of(self, forwarder):
        return [ns for turns in self.rounds for whose, ns in turns if whose is forwarder]

    def pairs(self, peer, quiet):
        """Turns of ours, each with the mean of the peer's before and after it; only those beside quiet ones of testpmd if so asked."""
        bound = QUIET * min(self.of(Testpmd)) if quiet else float("inf")
        for turns in self.rounds:
            for place, (whose, ours) in enumerate(turns):
                around = [beside(turns, place, forwarder) for forwarder in (peer, Testpmd)]
                if whose is Ours and all(around) and max(around[1]) <= bound:
                    yield ours, sum(around[0]) / 2


def beside(turns, place, forwarder):
    """Its last turn before and its first after this one; nothing where it has not both."""
    before = [ns for whose, ns in turns[:place] if whose is forwarder]
    after = [ns for whose, ns in turns[place + 1:] if whose is forwarder]
    return (before[-1], after[0]) if before and after else None


def turn(one):
    """ns of CPU time a frame."""
    os.kill(one.process.pid, signal.SIGCONT)
    try:
        time.sleep(WARM)
        before = counts(one)
        time.sleep(TURN)
        frames, used = (after - before for before, after in zip(before, counts(one)))
        return used / max(1, frames)
    finally:
        os.kill(one.process.pid, signal.SIGSTOP)


def counts(one):
    """Frames and CPU time, in this order each time: asking for the first takes some forwarders ten milliseconds."""
    return one.sent(), cpu(one.account)


def end(one):
    os.kill(one.process.pid, signal.SIGCONT)
    one.stop()


def compared(pairs):
    """How many, and the medians of difference and ratio."""
    pairs = list(pairs)
    if not pairs:
        return f"{0:>5}{'-':>10}{'-':>7}"
    less = statistics.median(ours - peer for ours, peer in pairs)
    ratio = statistics.median(peer / ours for ours, peer in pairs)
    return f"{len(pairs):>5}{less:>+10.1f}{ratio:>7.2f}"


def row(forwarders, rounds, folder, binary, case):
    """A row of the table, a line each forwarder."""
    case.captures(folder)
    turns = Turns()
    for _ in range(rounds):
        turns.take(forwarders, folder, binary, case)
    if case.goal:
        print(f"{case.text:<30}{'goal':<12}{'':>14}   +{case.goal[0]} over testpmd, at most +{case.goal[1]}")
    for forwarder in forwarders:
        ns = turns.of(forwarder)
        line = f"{case.text:<30}{forwarder.name:<12}{min(ns):>6.1f}{statistics.median(ns):>8.1f}"
        if forwarder is not Ours:
            line += "".join(f"   {compared(turns.pairs(forwarder, quiet))}" for quiet in (False, True))
        print(line, flush=True)


def staged(folder, binary, case):
    """Cycles a frame of our own, by stage, of the turns in which frames came."""
    case.captures(folder)
    one = Ours(folder, binary, case)
    try:
        time.sleep(2)
        worker = one.show("workers")[0]
        ports = one.show("ports")
    finally:
        one.stop()
    received = sum(port["rx"]["packets"] for port in ports)
    sent = sum(port["tx"]["packets"] for port in ports)
    cycles = ", ".join(f"{stage} {count:.0f}" for stage, count in worker["cycles"].items())
    print(f"{case.text:<40}{100 * sent / max(1, received):>5.1f} % of the frames sent; cycles a received frame: {cycles}", flush=True)


def rte_sched():
    """Cycles a frame of DPDK's scheduler library with as many frames standing as there is memory for."""
    command = [f"{os.environ['PEERS']}/rte_sched", "--lcores=1@1", "--no-pci", "--in-memory", "--", "30000"]
    line = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).splitlines()[-1]
    enqueue, dequeue, free = line.split()
    print(f"{'the same queue in rte_sched':<40}30,000 frames standing; cycles a frame: enqueue {enqueue}, dequeue {dequeue}, mark and free {free}", flush=True)


def processor():
    with open("/proc/cpuinfo") as info:
        model = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as size:
        return f"{model}, {os.cpu_count()} cores, L3 {size.read().strip()}"


def full_table(binary, file):
    """100,000 flows over a table of prefixes, by the bench of ours; the peers have no such table."""
    command = [binary, "bench", "--json", "--frames", "62", "--flows", "100000", "--routes", file]
    line = json.loads(subprocess.check_output(command, text=True).splitlines()[0])
    print(f"{'100,000 flows, full table':<30}{Ours.name:<12}{line['ns_per_frame']:>14.1f}   {line['routes']:,} routes, source and sink as above", flush=True)


def main():
    words = sys.argv[2:]
    table = None
    if "--full-table" in words:
        at = words.index("--full-table")
        table = words[at + 1]
        del words[at:at + 2]
    rounds = next((int(word) for word in words if word.isdigit() and int(word) < 62), 5)
    binary = sys.argv[1]
    names = [word for word in words if not word.startswith("--") and not (word.isdigit() and int(word) < 62)]
    unknown = set(names) - {case.name for case in CASES + STAGED}
    if unknown:
        sys.exit(f"no row {', '.join(unknown)}: {', '.join(case.name for case in CASES + STAGED)}")
    with tempfile.TemporaryDirectory() as folder:
        print(processor())
        print(f"""{'':>42}ns of CPU a frame         all turns               beside quiet ones
{'traffic':<30}{'forwarder':<12} least  median   turns ours less  peer/   turns ours less  peer/
{'':>42}                        peer, ns   ours          peer, ns   ours""")
        for case in CASES:
            if not names or case.name in names:
                l3fwd = [L3fwd, L3fwdFib] if case.l3fwd and "PEERS" in os.environ else []
                ovs = [Ovs] if case.ovs and "--no-ovs" not in words else []
                row([Ours, Testpmd, *l3fwd, *ovs], rounds, folder, binary, case)
        if table:
            full_table(binary, table)
        for case in STAGED:
            if not names or case.name in names:
                staged(folder, binary, case)
                if case.name == "standing" and "PEERS" in os.environ:
                    rte_sched()


if __name__ == "__main__":
    main()
