"""A namespace with a TAP device for each guest, the real switch between them, and captures of the CNPs it sends."""
import json
import os
import signal
import subprocess
import threading
import time

# CNPs over IPv4 and over IPv6, by the base transport header's opcode.
CNPS = "(udp dst port 4791 and udp[8] = 0x81) or (ip6 and ip6[6] = 17 and ip6[48] = 0x81)"


class Namespace:
    def __init__(self, hosts=(1, 2)):
        self.name = f"npcc-softroce-{os.getpid()}"
        run("ip", "netns", "add", self.name)
        # The kernel's own traffic must not appear on the TAP devices.
        self.run("sysctl", "-q", "-w", "net.ipv6.conf.default.disable_ipv6=1")
        for tap in (f"tap{host}" for host in hosts):
            self.run("ip", "tuntap", "add", tap, "mode", "tap")
            # Long enough for every packet that rxe may have in flight: 128 a queue pair.
            self.run("ip", "link", "set", tap, "mtu", "4200", "txqueuelen", "8192", "up")

        # Management network of the first guest.
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "tuntap", "add", "mgmt1", "mode", "tap")
        self.run("ip", "addr", "add", "10.9.1.1/24", "dev", "mgmt1")
        self.run("ip", "link", "set", "mgmt1", "up")

    def run(self, *words):
        run("ip", "netns", "exec", self.name, *words)

    def start(self, *words, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.name, *words], stdin=subprocess.DEVNULL, **options)

    def stop(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False)


NAMES = {1: "dc0", 2: "wan0", 3: "dc1"}
NPCC = "npcc: { shallow: 50KB, deep: 200KB, gate: off }"


class Switch:
    """One run of the switch. `slow`: the rate of wan0's egress, none for that of the other ports; `npcc` may have other keys behind it.

    What it sends passes the kernel's queue (qdisc_bypass=0), so that dumpcap sees it.
    """

    def __init__(self, folder, space, binary, slow=None, hosts=(1, 2), fast="10G", npcc=NPCC, policy=None):
        self.binary, self.socket, self.stats = binary, f"{folder}/switch.sock", f"{folder}/stats.json"
        config, self.log = f"{folder}/switch.yaml", f"{folder}/switch.log"
        ports, chosen = "", f", policy: {policy}" if policy else ""
        for index, host in enumerate(hosts, 1):
            name = NAMES[host]
            speed = slow if slow and name == "wan0" else fast
            ports += f"""
  - {{ name: {name}, device: "net_af_packet{index},iface=tap{host},blocksz=73728,framesz=9216,framecnt=2048,qdisc_bypass=0", mac: "02:00:00:00:0{host}:01",
      mtu: 4200, addresses: [10.0.{host}.1/24, "2001:db8:{host}::1/64"], speed: {speed}, npcc: {{ enable: true, queues: [3]{chosen} }} }}"""
        neighbors = "".join(f"""
  - {{ address: {address}, port: {name}, mac: "02:00:00:00:0{host}:02" }}"""
                            for host, name in NAMES.items() if host in hosts
                            for address in (f"10.0.{host}.2", f'"2001:db8:{host}::2"'))
        with open(config, "w") as out:
            out.write(f"""version: 1
dpdk: {{ eal_args: ["--no-pci", "--in-memory"] }}
telemetry: {{ socket: {self.socket} }}
ports:{ports}
neighbors:{neighbors}
qos: {{ profile: roce-semi-lossless }}
buffer: {{ pool: 32MB }}
{npcc}
""")
        self.process = space.start(binary, "run", "-c", config, "--stats-json", self.stats,
                                   stdout=open(self.log, "w"), stderr=subprocess.STDOUT)
        for _ in range(300):
            if os.path.exists(self.socket):
                break
            if self.process.poll() is not None:
                raise SystemExit(f"the switch ended:\n{open(self.log).read()}")
            time.sleep(0.1)

    def show(self, what):
        return json.loads(subprocess.check_output([self.binary, "show", what, "--json", "--socket", self.socket]))

    def stop(self):
        """Stops the switch and returns its totals."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        return json.load(open(self.stats))


class Watch:
    """Records what the switch took for the sender of each flow, at any time until the end: {(source, destination, QP): {(sender's QP, evidence)}}."""

    def __init__(self, switch):
        self.switch, self.seen, self.over = switch, {}, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while True:
            last = self.over.wait(0.4)
            try:
                flows = self.switch.show("flows")
            except subprocess.CalledProcessError:
                # The switch is gone; its starter reports that.
                return
            for flow in flows:
                key = flow["src"], flow["dst"], flow["dest_qp"]
                self.seen.setdefault(key, set()).add((flow["sender_qp"], flow["evidence"]))
            if last:
                return

    def stop(self):
        self.over.set()
        self.thread.join()
        return self.seen


class Capture:
    """Captures the CNPs that leave toward one guest, with dumpcap."""

    def __init__(self, folder, space, tap):
        self.path = f"{folder}/cnps-{tap}.pcap"
        if os.path.exists(self.path):
            os.remove(self.path)
        self.log = f"{folder}/dumpcap.log"
        self.process = space.start("dumpcap", "-q", "-P", "-i", tap, "-f", CNPS, "-w", self.path,
                                   stdout=subprocess.DEVNULL, stderr=open(self.log, "w"))
        for _ in range(100):
            if os.path.exists(self.path):
                return
            time.sleep(0.1)
        raise SystemExit(f"dumpcap does not start:\n{open(self.log).read()}")

    def stop(self):
        time.sleep(0.3)
        self.process.terminate()
        self.process.wait(10)
        return self.path


def run(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} (needs root): {done.stdout}")
