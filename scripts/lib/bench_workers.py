"""One worker against two: bench_workers.py NPCC_SWITCH [ROUNDS]

Each worker has a source (net_pcap infinite_rx, 64 RoCEv2 flows) and a sink (net_null). `apart`: what a worker takes in leaves by its
own port. `across`: it leaves by the other's, so that every frame crosses. Measured: frames sent a second of the clock, and CPU
time of all workers a frame, in turns; medians. On two cores the control thread shares one with a worker.

`testpmd`, `testpmd across`: the same with testpmd's `mac`, whose frames cross as bare pointers in a ring of DPDK's (net_ring):
what a crossing costs on this machine before anything is done about it.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from bench_peers import SETTLE, Testpmd, capture, cpu, spawn, worker

MEASURE = 2.0  # seconds
WAYS = {"one": ([1], {0: 0}), "apart": ([0, 1], {0: 0, 1: 1}), "across": ([0, 1], {0: 1, 1: 0})}


def config(folder, way):
    """Ports dcN and wanN of worker N; the frames of dcN go to 10.0.(2+N).0/24."""
    cores, leads = WAYS[way]
    ports, routes, neighbors = [], [], []
    for n, out in leads.items():
        core = cores[n]
        ports.append(f"""  - {{ name: dc{n}, worker: {core}, device: "net_pcap{n},rx_pcap={folder}/{n}.pcap,infinite_rx=1", mac: "02:00:00:00:01:01",
      mtu: 4200, speed: 400G, addresses: [10.0.{10 + n}.1/24] }}
  - {{ name: wan{n}, worker: {core}, device: "net_null{n},no-rx=1", mac: "02:00:00:00:02:0{n}", mtu: 4200, speed: 400G,
      addresses: [10.0.{20 + n}.1/24], npcc: {{ enable: true, queues: [3] }} }}""")
        routes.append(f"  - {{ prefix: 10.0.{2 + n}.0/24, via: 10.0.{20 + out}.2 }}")
        neighbors.append(f'  - {{ address: 10.0.{20 + n}.2, port: wan{n}, mac: "02:00:00:00:09:0{n}" }}')
    new = "\n"
    return f"""version: 1
dpdk: {{ eal_args: ["--no-pci", "--in-memory"] }}
telemetry: {{ socket: {folder}/s.sock }}
cores: {{ control: 0, workers: {cores} }}
npcc: {{ tick: 1ms, recovery: 1ms }}
ports:
{new.join(ports)}
routes:
{new.join(routes)}
neighbors:
{new.join(neighbors)}
buffer: {{ pool: 64MB, lossless_min_frame: 1024 }}
"""


def measure(folder, binary, way):
    path = f"{folder}/{way}.yaml"
    with open(path, "w") as out:
        out.write(config(folder, way))
    process = spawn([binary, "run", "-c", path], stdout=subprocess.DEVNULL)
    try:
        time.sleep(SETTLE)
        accounts = [worker(process.pid, core) for core in WAYS[way][0]]

        def now():
            ports = json.loads(subprocess.check_output([binary, "show", "ports", "--json", "--socket", f"{folder}/s.sock"]))
            return sum(port["tx"]["packets"] for port in ports), sum(map(cpu, accounts)), time.monotonic()

        return rates(now)
    finally:
        process.terminate()
        process.wait()


class Bare(Testpmd):
    """Two threads of testpmd, each with a source, a sink, and a ring to the other; or one with a source and a sink."""

    def __init__(self, folder, across):
        source = [f"net_pcap{n},rx_pcap={folder}/{n}.pcap,infinite_rx=1" for n in (0, 1)]
        sink = [f"net_null{n},no-rx=1" for n in (0, 1)]
        if across:
            # What a port receives the next one sends; of six, a thread has three in a row.
            devices = ["net_ring1", sink[1], source[0], "net_ring0", sink[0], source[1]]
            self.start(devices, "0@0,1@0,2@1", [1, 4], "--port-topology=chained", "--nb-cores=2", "--burst=64")
        else:
            self.start([source[0], sink[0]], "0@0,1@1", [1], "--burst=64")


def measure_bare(folder, across):
    testpmd = Bare(folder, across)

    def now():
        return testpmd.sent(), sum(map(cpu, testpmd.accounts)), time.monotonic()

    try:
        return rates(now)
    finally:
        testpmd.stop()


def rates(now):
    """Millions of frames a second, and CPU time a frame, of what `now` tells: frames, CPU time and the clock."""
    before = now()
    time.sleep(MEASURE)
    frames, used, seconds = (after - before for before, after in zip(before, now()))
    return frames / seconds / 1e6, used / max(1, frames)


def main():
    binary = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        for n in WAYS["apart"][1]:
            capture(f"{folder}/{n}.pcap", 62, net=2 + n)
        figures = {way: [] for way in (*WAYS, "testpmd", "testpmd across")}
        for _ in range(rounds):
            for way, list_of in figures.items():
                if way in WAYS:
                    list_of.append(measure(folder, binary, way))
                else:
                    list_of.append(measure_bare(folder, way == "testpmd across"))
        print(f"{'workers':<14} {'Mpps':>6} {'CPU ns a frame':>15}   rate over one")
        for way, list_of in figures.items():
            rate, used = (statistics.median(column) for column in zip(*list_of))
            alone = figures["one" if way in WAYS else "testpmd"]
            ratio = statistics.median(ours[0] / one[0] for ours, one in zip(list_of, alone))
            print(f"{way:<14} {rate:>6.2f} {used:>15.1f}   {ratio:>13.2f}")
        added = [statistics.median(two[1] - one[1] for two, one in zip(figures[across], figures[alone]))
                 for across, alone in (("across", "one"), ("testpmd across", "testpmd"))]
        print(f"a crossing adds {added[0]:.1f} ns of CPU, waits and all; as a bare pointer {added[1]:.1f}: {added[0] - added[1]:+.1f}")


if __name__ == "__main__":
    main()
