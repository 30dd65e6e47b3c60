"""Closes the loop with real verbs: two guests write by perftest to a third through the real switch, and CNPs slow them down.

loop.py SWITCH IMAGE [--seconds N] [--keep FOLDER]

dcqcn.bpf.c on the senders' interfaces is the reaction point of DCQCN, which soft-RoCE does not have. Everything runs SCALE times slower than a
network of 40 Gb/s: the switch's clock (time_scale), the timers of the reaction point, and its rates. The bottleneck of 40G is one of 40 Mb/s,
which emulated guests can fill.

Prints a table of NPCC off and on, and ends with 1 if one of these does not hold:

- a CNP by hand (`npcc-switch cnp send`) halves the rate of the queue pair that it names, and of no other;
- with NPCC on, CNPs reach every queue pair, each by its number; the queue's mean is below a quarter of that without, its peak lower; the
  bottleneck sends at least three quarters of what it sends without; and nothing is dropped or missed.
"""
import argparse
import contextlib
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from guest import Guest
from machine import GuestError
from network import NAMES, Namespace, Switch
from perftest import DSCP_ROCE, qpns

SCALE = 1000
LINE = 40e9 / 8 / SCALE
SENDERS, RECEIVER = (1, 3), 2
QUEUE_PAIRS = 8
MTU, SIZE = 1024, 65536
# rxe's counters that stay 0 on a lossless path.
BROKEN = ("rcvd_seq_err", "out_of_seq_request", "retry_exceeded_err", "send_err", "duplicate_request", "completer_retry_err")
ROWS = (("off", "off", "model"), ("model", "send", "model"), ("npcc", "send", "npcc"))
MAPS = "/sys/fs/bpf/tc/globals"


def with_program(image, folder):
    """Returns an initramfs in `folder`: the image's, and the reaction point beside it."""
    subprocess.check_call(["clang", "-O2", "-g", "-Wall", "-Werror", "-target", "bpf", f"-DSCALE={SCALE}", "-I/usr/include/x86_64-linux-gnu",
                           "-c", Path(__file__).with_name("dcqcn.bpf.c"), "-o", f"{folder}/dcqcn.o"])
    archive = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=b"dcqcn.o\n", cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    whole = Path(folder) / "initramfs.cpio"
    whole.write_bytes(Path(image, "initramfs.cpio").read_bytes() + archive)
    return str(whole)


def attach(guest):
    """Gives a guest its reaction point. A packet waits in fq as long as its rate says: seconds, while everything is this slow."""
    for command in ("mount -t bpf bpf /sys/fs/bpf",
                    "/usr/sbin/tc qdisc replace dev eth0 root fq limit 20000 flow_limit 2000 horizon 60s",
                    "/usr/sbin/tc qdisc add dev eth0 clsact",
                    "/usr/sbin/tc filter add dev eth0 ingress bpf direct-action object-file /dcqcn.o section ingress",
                    "/usr/sbin/tc filter add dev eth0 egress bpf direct-action object-file /dcqcn.o section egress"):
        guest.check(command)


def rates(guest):
    """Returns the state of the guest's queue pairs that CNPs have slowed down, by number."""
    rows = json.loads(guest.check(f"/usr/sbin/bpftool -j map dump pinned {MAPS}/rates"))
    return {row["formatted"]["key"]: row["formatted"]["value"] for row in rows}


def forget(guest):
    """Forgets all queue pairs: a run begins at line rate."""
    for name in ("rates", "queue_pairs"):
        rows = json.loads(guest.check(f"/usr/sbin/bpftool -j map dump pinned {MAPS}/{name}"))
        for row in rows:
            guest.check(f"/usr/sbin/bpftool map delete pinned {MAPS}/{name} key hex {' '.join(byte.removeprefix('0x') for byte in row['key'])}")


class Depth:
    """The congested queue, looked at until it is stopped."""

    def __init__(self, switch):
        self.switch, self.seen, self.over = switch, [], threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while not self.over.wait(0.1):
            # On a busy machine an answer may take too long: one sample fewer.
            with contextlib.suppress(subprocess.CalledProcessError):
                self.seen.append(congested(self.switch)[1]["depth"])

    def stop(self):
        self.over.set()
        self.thread.join()
        return self.seen


def congested(switch):
    """Returns the port to the receiver and its queue of RoCE data."""
    port = next(port for port in switch.show("ports") if port["name"] == "wan0")
    return port, port["queues"][3]


def passed(switch):
    """Returns the bytes that came in from each sender, and those that left to the receiver, by port."""
    return {port["name"]: port["tx" if port["name"] == "wan0" else "rx"]["bytes"] for port in switch.show("ports")}


def command(guest, seconds, sender):
    return (f"timeout {seconds + 60} ib_write_bw -F -d rxe0 -i 1 -x {guest.gid(4)} -q {QUEUE_PAIRS} -m {MTU} -s {SIZE} -D {seconds} -u 25 -Q 1 -t 16"
            f" -p {18515 + sender} --tclass={DSCP_ROCE}")


def write(guests, seconds, meanwhile):
    """Has all senders write for so many seconds; calls `meanwhile` with a third of it gone. Returns each sender's queue pairs."""
    server = guests[RECEIVER]
    for sender in SENDERS:
        server.check(f"{command(server, seconds, sender)} > /tmp/server{sender}.log 2>&1 < /dev/null &")
    for sender in SENDERS:
        listens = f"cat /proc/net/tcp | grep -q ':{18515 + sender:04X} .* 0A '"
        server.check(f"i=0; until {listens} || [ $i -ge 400 ]; do i=$((i+1)); sleep 0.1; done")
    for sender in SENDERS:
        guest = guests[sender]
        guest.check(f"{command(guest, seconds, sender)} {server.address(4)} > /tmp/client.log 2>&1 < /dev/null &")
    time.sleep(seconds / 3)
    meanwhile()
    done = {}
    for sender in SENDERS:
        said, _ = guests[sender].run("wait; cat /tmp/client.log", seconds + 90)
        if not re.search(rf"^ {SIZE} +\d+ ", said, re.M):
            heard, _ = server.run(f"cat /tmp/server{sender}.log", 30)
            raise GuestError(f"no result of sender {sender}\n{said}\n--- the server:\n{heard}")
        done[sender] = qpns(said, "local")
    server.run("wait", seconds + 90)
    return done


def totals(guests):
    return {key: sum(guest.counters()[key] for guest in guests.values()) for key in BROKEN}


def run(rig, name, how, seconds):
    """Runs one transfer with this action and policy; returns its figures."""
    guests = rig.guests
    for sender in SENDERS:
        forget(guests[sender])
    switch = rig.switch(*how)
    try:
        before = totals(guests)
        seen = []

        def settled():
            # All senders begin at line rate; what follows their first cuts is counted.
            subprocess.check_call([rig.binary, "clear", "watermarks", "--socket", switch.socket])
            begun, before = time.monotonic(), passed(switch)
            seen.append(Depth(switch))
            time.sleep(seconds / 2)
            took, after = time.monotonic() - begun, passed(switch)
            seen.append({port: (count - before[port]) * 8 / took / 1e6 for port, count in after.items()})
            seen.append(congested(switch)[1]["peak"])
        done = write(guests, seconds, settled)
        depths = seen[0].stop()
        port, queue = congested(switch)
        state = {sender: rates(guests[sender]) for sender in SENDERS}
        after = totals(guests)
        npcc = switch.show("npcc")
    finally:
        switch.stop()
    drops = sum(count for reason, count in port["drops"].items() if reason not in ("martian", "multicast"))
    return {"name": name, "rates": seen[1], "queue_pairs": done, "peak": seen[2], "mean": statistics.mean(depths or [0]), "marks": queue["ecn_marked"], "drops": drops, "cnps": npcc["cnps_sent"],
            "broken": {key: after[key] - before[key] for key in BROKEN if after[key] != before[key]}, "state": state}


def by_hand(rig, seconds):
    """Orders one CNP to one queue pair, and returns what is wrong with what came of it."""
    guests, wrong = rig.guests, []
    for sender in SENDERS:
        forget(guests[sender])
    switch = rig.switch("off", "model")
    try:
        def order():
            for _ in range(100):
                paired = [flow for flow in switch.show("flows") if flow["src"] == guests[1].address(4) and flow["sender_qp"]]
                if paired:
                    break
                time.sleep(0.1)
            flow = paired[0]
            subprocess.check_call([rig.binary, "cnp", "send", "--to", flow["src"], "--from", flow["dst"], "--qp", str(flow["sender_qp"]), "--socket", switch.socket])
            time.sleep(0.3)
            rig.ordered = flow["sender_qp"], rates(guests[1])
        write(guests, seconds, order)
        queue_pair, slowed = rig.ordered
        if set(slowed) != {queue_pair} or slowed[queue_pair]["cnps"] != 1:
            wrong.append(f"a CNP to {queue_pair:#x} slowed down {slowed}")
        else:
            share = slowed[queue_pair]["least"] / LINE
            print(f"a CNP by hand to queue pair {queue_pair:#x}: its rate fell to {share:.3f} of the line")
            if not 0.49 < share < 0.51:
                wrong.append(f"the rate fell to {share:.3f} of the line")
    finally:
        switch.stop()
    return wrong


def each_queue_pair(row):
    """Returns the fewest and the most CNPs of a queue pair."""
    counts = [rate["cnps"] for state in row["state"].values() for rate in state.values()]
    return f"{min(counts)} to {max(counts)}" if counts else "-"


def judge(off, on):
    """Returns what is wrong with a transfer with NPCC, beside one without."""
    wrong = []
    for sender in SENDERS:
        missed = set(on["queue_pairs"][sender]) - set(on["state"][sender])
        strange = set(on["state"][sender]) - set(on["queue_pairs"][sender])
        if missed:
            wrong.append(f"no CNP reached queue pairs {sorted(missed)} of sender {sender}")
        if strange:
            wrong.append(f"CNPs to {sorted(strange)}, which sender {sender} does not have")
    if off["cnps"] or any(off["state"].values()):
        wrong.append("CNPs with the action off")
    for key, share in (("peak", 1), ("mean", 0.25)):
        if on[key] >= off[key] * share:
            wrong.append(f"the queue's {key} is {on[key]:.0f} B with {on['name']} and {off[key]:.0f} without")
    if on["rates"]["wan0"] < 0.75 * off["rates"]["wan0"]:
        wrong.append(f"{on['rates']['wan0']:.1f} Mb/s of {off['rates']['wan0']:.1f} leave with {on['name']}")
    for one in (off, on):
        if one["drops"] or one["broken"]:
            wrong.append(f"{one['name']}: {one['drops']} drops, {one['broken']}")
    return wrong


class Rig:
    def __init__(self, folder, space, guests, binary):
        self.folder, self.space, self.guests, self.binary = folder, space, guests, binary

    def switch(self, action, policy):
        npcc = f"time_scale: {SCALE}\nnpcc: {{ action: {action}, gate: off }}"
        return Switch(self.folder, self.space, self.binary, "40G", tuple(self.guests), "400G", npcc, policy)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("switch")
    words.add_argument("image")
    words.add_argument("--seconds", type=int, default=60, help="length of each transfer")
    words.add_argument("--keep", help="folder for logs")
    given = words.parse_args()
    begun = time.monotonic()
    # A rig that is told to end leaves no guest behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        folder = given.keep or stack.enter_context(tempfile.TemporaryDirectory())
        initrd = with_program(given.image, folder)
        hosts = (*SENDERS, RECEIVER)
        space = Namespace(hosts)
        stack.callback(space.stop)
        guests = {}
        for host in hosts:
            guests[host] = Guest(folder, space.name, given.image, host, f"tap{host}", initrd)
            stack.callback(guests[host].stop)
        for guest in guests.values():
            guest.booted()
        for sender in SENDERS:
            attach(guests[sender])
        # Connections of a guest with itself: from now on the guests number their queue pairs differently, so that a mix-up shows.
        for host, pairs in ((1, 7), (3, 3)):
            guests[host].check(f"(ib_write_bw -F -d rxe0 -q {pairs} -n 5 -s 64 > /dev/null 2>&1 < /dev/null &); sleep 1; "
                               f"ib_write_bw -F -d rxe0 -q {pairs} -n 5 -s 64 127.0.0.1 < /dev/null 2>&1")
        print(f"== three guests are up after {time.monotonic() - begun:.1f} s; {len(SENDERS)} senders of {QUEUE_PAIRS} queue pairs each, "
              f"40G {SCALE} times slower", flush=True)
        rig = Rig(folder, space, guests, given.switch)
        wrong = by_hand(rig, 12)
        rows = [run(rig, name, (action, policy), given.seconds) for name, action, policy in ROWS]
        print(f"{'NPCC':<7}{'link':>7}{'senders':>15}{'peak':>7}{'mean':>7}{'CE':>8}{'drops':>7}{'CNPs':>7}{'a queue pair':>14}   Mb/s of frames, KB")
        for row in rows:
            link, *senders = (row["rates"][NAMES[host]] for host in (RECEIVER, *SENDERS))
            each = ", ".join(f"{rate:.1f}" for rate in senders)
            print(f"{row['name']:<7}{link:>7.1f}{each:>15}{row['peak'] / 1e3:>7.0f}{row['mean'] / 1e3:>7.0f}"
                  f"{row['marks']:>8}{row['drops']:>7}{row['cnps']:>7}{each_queue_pair(row):>14}", flush=True)
        for row in rows[1:]:
            wrong += judge(rows[0], row)
    print(f"== {'; '.join(wrong) or 'ok'}; {time.monotonic() - begun:.0f} s in all")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
