"""Tests two Linux hosts with soft-RoCE and the real switch between them: rig.py SWITCH IMAGE [--short] --agent PROGRAM --feed PROGRAM [--part fast|slow] [--keep FOLDER]

Prints a line for each transfer and ends with 1 if one broke a law:

- as fast as it goes: the transfer completes, no packet is repeated or missed (rxe's own counters), and every flow of the switch
  has the sender's queue pair that perftest prints. (-u 20 does not reach connections of rdma_cm: their timeout is half a second, which
  eight of them on one emulated core may pass, so that with -R a repetition is shown and not judged; a sequence error is.)
- egress slowed to 100 Mb/s: the same but for repetitions after a timeout; nothing is dropped; CNPs go out to every sender, are
  well formed (scapy recomputes their ICRC) and carry the queue pair of a sender of this transfer; the guests go on working.
- npcc-agent in each guest lists both queue pairs of every connection of a transfer while it runs, as perftest prints them and as the switch
  pairs them; with rdma_cm it has the partner's address too. What the sender's agent publishes reaches the switch by nats-server and
  npcc-feed, and is renewed. With --queue-pairs N it says instead what a poll costs where a guest has so many.
"""
import argparse
import contextlib
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter

from agent import Polls, cost, with_agent
from bus import Bus
from guest import Guest
from machine import GuestError
from network import Capture, Namespace, Switch, Watch
from perftest import Transfer, transfer

ORACLE = __file__.replace("softroce/rig.py", "oracle/verify_cnps.py")
# rxe's counters that stay 0 on a lossless path.
BROKEN = ("rcvd_seq_err", "out_of_seq_request", "retry_exceeded_err", "send_err", "rcvd_rnr_err", "retry_rnr_exceeded_err")
REPEATED = ("duplicate_request", "completer_retry_err")


def fast(short):
    kinds = (("write", False), ("read", False), ("send", False), ("send", True), ("write", True), ("read", True))
    if short:
        return [Transfer("write", 8, 4096, 4), Transfer("read", 8, 1024, 6), Transfer("send", 1, 4096, 4, True)]
    # perftest of Debian 12 resolves IPv4 names only for -R.
    return [Transfer(verb, qps, mtu, version, cm)
            for (verb, cm), qps, mtu, version in itertools.product(kinds, (1, 8), (1024, 4096), (4, 6)) if not (cm and version == 6)]


def slow(short):
    if short:
        return [Transfer("write", 8, 4096, 4)]
    return [Transfer(verb, 8, mtu, version) for verb, mtu, version in
            (("write", 4096, 4), ("write", 1024, 6), ("read", 4096, 6), ("read", 1024, 4), ("send", 4096, 4), ("send", 1024, 6))]


def cnps(python, path):
    return json.loads(subprocess.check_output([python, ORACLE, path]))[0]


def lost(ports):
    """Returns drops by reason. Martians and multicasts are the guests' own greetings to their links, not for a router."""
    found = Counter()
    for port in ports:
        found.update(port["drops"])
    for greeting in ("martian", "multicast"):
        del found[greeting]
    return found


class Rig:
    def __init__(self, folder, space, guests, binary, python):
        self.folder, self.space, self.guests, self.binary, self.python = folder, space, guests, binary, python
        self.failed = 0

    def one(self, switch, what, iterations, slowed):
        """Runs one transfer; prints its line and returns what was wrong."""
        before = [guest.counters() for guest in self.guests]
        dropped = lost(switch.show("ports"))
        capture = Capture(self.folder, self.space, "tap1") if slowed else None
        watch = Watch(switch)
        begun = time.monotonic()
        wrong = []
        try:
            pairs, speed = transfer(what, self.guests, iterations)
        except GuestError as error:
            print(f"{what}  FAILED: {error}", flush=True)
            return ["failed"]
        finally:
            seen = watch.stop()
            told = cnps(self.python, capture.stop()) if capture else []
        took = time.monotonic() - begun
        after = [guest.counters() for guest in self.guests]
        moved = {key: sum(late[key] - early[key] for late, early in zip(after, before)) for key in after[0]}
        wrong += [f"{key} {moved[key]}" for key in BROKEN + (() if slowed or what.cm else REPEATED) if moved.get(key)]
        wrong += [f"the switch dropped {count} {reason}" for reason, count in (lost(switch.show("ports")) - dropped).items()]

        evidence = set()
        for pair in pairs:
            beliefs = {belief for belief in seen.get((pair.src, pair.dst, pair.dest_qp), ()) if belief[0] is not None}
            wrong += [f"flow to QP {pair.dest_qp:#x}: sender's QP {qp:#x} by {by}, perftest says {pair.sender_qp:#x}"
                      for qp, by in beliefs if qp != pair.sender_qp]
            if not beliefs:
                wrong.append(f"flow to QP {pair.dest_qp:#x} was never paired")
            evidence |= {by for _, by in beliefs}
        if what.cm and "cm" not in evidence:
            wrong.append("rdma_cm named the queue pairs, and was not heard")

        sent = ""
        if capture:
            mine = {pair.sender_qp for pair in pairs}
            bad = [cnp for cnp in told if cnp["dqpn"] not in mine]
            broken = [cnp for cnp in told if not (cnp["icrc_ok"] and cnp["checksums_ok"] and cnp["becn"] == 1)]
            others = [cnp for cnp in told if {(cnp["src"], cnp["dst"])} != {(pair.dst, pair.src) for pair in pairs}]
            untold = mine - {cnp["dqpn"] for cnp in told}
            wrong += [f"{len(found)} CNPs {how}" for found, how in
                      ((bad, "with a wrong QP"), (broken, "malformed"), (others, "to somebody else")) if found]
            if untold:
                wrong.append(f"never told: {sorted(untold)}")
            queue = next(port for port in switch.show("ports") if port["name"] == "wan0")["queues"][3]
            sent = f"  {len(told):>5} CNPs, {len(bad)} wrong QP, peak {queue['peak'] / 1e3:.0f} KB"
        repeated = sum(moved.get(key, 0) for key in REPEATED)
        print(f"{what}  {took:5.1f} s  {speed:6.1f} MB/s  {len(pairs)} paired by {', '.join(sorted(evidence)) or '-'}"
              f"  {repeated} repeated{sent}  {'; '.join(wrong) or 'ok'}", flush=True)
        return wrong

    def agents(self, switch, what):
        """Has agents poll while a transfer runs; returns what was wrong. The kernel names the partner's address of connections of rdma_cm."""
        polls, watch = Polls(self.guests), Watch(switch)
        try:
            pairs, _ = transfer(what, self.guests, 200)
        finally:
            seen = watch.stop()
            leases, largest = polls.stop()
        wrong = [f"the switch saw no {pair}" for pair in pairs if pair.sender_qp not in {qp for qp, _ in seen.get((pair.src, pair.dst, pair.dest_qp), ())}]
        for pair in pairs:
            ends = ((pair.src, pair.dst, pair.sender_qp, pair.dest_qp), (pair.dst, pair.src, pair.dest_qp, pair.sender_qp))
            for listed, (own, partner, *numbers) in zip(leases, ends):
                if (own, partner if what.cm else None, *numbers) not in listed:
                    wrong.append(f"no lease of {own} of {pair}")
        print(f"{what}  agents: {largest}  {'; '.join(wrong) or 'ok'}", flush=True)
        return wrong

    def leases(self, switch, feed):
        """Has the sender's agent publish while transfers run for two renewals; returns what was wrong."""
        what, count = Transfer("write", 8, 4096, 4), 0
        bus = Bus(self.folder, self.space, feed, switch, self.guests[0])
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < 5:
                pairs, _ = transfer(what, self.guests, 400)
                count += len(pairs)
        finally:
            held, accepted, refused = bus.stop()
        wrong = [f"{number} leases {how} of {least}" for number, how, least in ((held, "held at once", what.qps), (accepted, "accepted", count + what.qps))
                 if number < least]
        wrong += [f"{number} refused: {why}" for why, number in refused.items() if number]
        said = bus.logs(self.folder) if wrong else ""
        print(f"{what}  by the bus: {held} leases held, {accepted} accepted for {count} queue pairs  {'; '.join(wrong) or 'ok'}\n{said}", end="", flush=True)
        return wrong

    def all(self, transfers, iterations, rate=None, feed=None):
        switch = Switch(self.folder, self.space, self.binary, rate)
        try:
            for what in transfers:
                wrong = self.one(switch, what, max(5, iterations // what.qps), rate is not None)
                # A guest that gets no core for a second repeats by timeout, with nothing lost. Twice in a row is no accident.
                if wrong and all(word.split()[0] in REPEATED for word in wrong):
                    wrong = self.one(switch, what, max(5, iterations // what.qps), rate is not None)
                self.failed += bool(wrong)
            if feed:
                for cm in (False, True):
                    self.failed += bool(self.agents(switch, Transfer("write", 8, 4096, 4, cm)))
                self.failed += bool(self.leases(switch, feed))
        finally:
            totals = switch.stop()
        account = totals["conservation"]
        print(f"the switch: {account['rx']['packets']:,} frames in, {lost(totals['ports']).total()} dropped, "
              f"{totals['npcc']['cnps_sent']:,} CNPs, {totals['npcc']['ticks_late']:,} of {totals['npcc']['ticks']:,} ticks late by more than half")


def main():
    words = argparse.ArgumentParser()
    words.add_argument("switch")
    words.add_argument("image")
    words.add_argument("--short", action="store_true")
    words.add_argument("--part", choices=("fast", "slow"), help="only this half")
    words.add_argument("--python", default=sys.executable)
    words.add_argument("--agent", help="npcc-agent, to be tried in the guests", required=True)
    words.add_argument("--feed", help="npcc-feed, which passes what an agent publishes to the switch", required=True)
    words.add_argument("--queue-pairs", type=int, help="only the cost of a poll of so many queue pairs")
    words.add_argument("--keep", help="folder for logs and captures")
    given = words.parse_args()
    begun = time.monotonic()
    # A rig that is told to end leaves no guest behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        folder = given.keep or stack.enter_context(tempfile.TemporaryDirectory())
        initrd = with_agent(given.image, given.agent, folder)
        space = Namespace()
        stack.callback(space.stop)
        guests = []
        for host in (1, 2):
            guest = Guest(folder, space.name, given.image, host, f"tap{host}", initrd, 2048 if given.queue_pairs else 256, "mgmt1" if host == 1 else None)
            stack.callback(guest.stop)
            guests.append(guest)
        for guest in guests:
            guest.booted()
        print(f"== both guests are up after {time.monotonic() - begun:.1f} s", flush=True)
        if given.queue_pairs:
            print(f"== of one guest with itself: {cost(guests[0], given.queue_pairs // 2)}")
            return 0
        # Seven connections of a guest with itself: from now on the two number their queue pairs differently, so that a mix-up shows.
        guests[0].check("(ib_write_bw -F -d rxe0 -q 7 -n 5 -s 64 > /dev/null 2>&1 < /dev/null &); sleep 1; "
                        "ib_write_bw -F -d rxe0 -q 7 -n 5 -s 64 127.0.0.1 < /dev/null 2>&1")
        rig = Rig(folder, space, guests, given.switch, given.python)
        if given.part != "slow":
            print("\n== as fast as it goes", flush=True)
            rig.all(fast(given.short), 200, feed=given.feed)
        if given.part != "fast":
            print("\n== wan0 slowed to 100 Mb/s: shallow 50 KB, deep 200 KB", flush=True)
            rig.all(slow(given.short), 400, "100M")
        for guest in guests:
            guest.check("true")
    print(f"\n== {rig.failed} transfers broke a law; {time.monotonic() - begun:.0f} s in all")
    return 1 if rig.failed else 0


if __name__ == "__main__":
    sys.exit(main())
