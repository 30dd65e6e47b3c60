"""Tests the switch on PCI devices in a guest: rig.py SWITCH TRANSCRIPT REPLAY IMAGE [--short] [--keep FOLDER]

Prints a line for each thing that must hold and ends with 1 if one did not. For each model of card:

- the driver answers as its profile in tests/card says: a transcript of its answers is replayed against the model;
- frames pass both ways, each byte as it must be behind a router;
- three times as many frames as the card's rings have descriptors pass, and frames up to the MTU in one piece;
- only the cards of the ports are opened, and a driver gets the arguments that stand behind its card's address;
- a link that goes down is down in `show ports` within 2 s, and frames pass again when it is up.

After a crash:

- hugepages that a dead process left count as free, and are freed;
- a switch that is killed, again and again, leaves no hugepage, and of files as much as at first; frames pass.

Not with --short, a card taken away under the switch:

- the switch goes on, and the port is down;
- it ends as it should; with the card back in its slot, the next run forwards.
"""
import argparse
import contextlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from guest import HUGEPAGES, MTU, Guest, Switch, neighbor

FRAMES = 20
# Descriptors that the switch requests for a card's receive and transmit ring.
DESCRIPTORS = 2048 + 1024
# Frames on their way at a time: the card's socket has room for them.
WINDOW = 64
# Lengths of IP packets: the last that fits 8 KiB with its Ethernet header, the first that does not, and those of jumbo frames.
LENGTHS = (8178, 8179, 9000, 9100)
# Descriptors of each model's transmit ring; virtio's is the device's.
RINGS = {"e1000e": 1024, "vmxnet3": 1024, "virtio": 256}
# Laws that do not hold yet. The fix of one removes it here: a law that holds although it is listed is a failure, too.
NOT_YET = set()


def frame(at, dst, src, ttl, hosts, length):
    """Returns the `at`-th untagged UDP packet of `length` bytes from the first of two hosts to the second."""
    addresses = b"".join(socket.inet_aton(f"10.0.{host}.2") for host in hosts)
    payload = struct.pack("!HHHH", 5000 + at, 9, length - 20, 0) + bytes(length - 28)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), at, 0x4000, ttl, 17, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return dst + src + b"\x08\x00" + header[:10] + struct.pack("!H", ~total & 0xffff) + header[12:] + payload


class Rig:
    def __init__(self, guest):
        self.guest, self.failed, self.begun = guest, 0, time.monotonic()

    def law(self, what, holds, found=""):
        """Prints whether a law holds, and counts those that do not."""
        late = what in NOT_YET
        self.failed += holds == late
        word = "ok" if holds and not late else "not yet" if late and not holds else "FAILED (it holds: take it off NOT_YET)" if late else "FAILED"
        print(f"{time.monotonic() - self.begun:6.1f} s  {what}{f': {found}' if found else ''}  {word}", flush=True)

    def pass_one_way(self, cards, hosts, seconds=5, numbers=range(FRAMES), length=86):
        """Returns the number of frames from the first card's host that arrive correctly at the second's, in so many seconds."""
        first, second = cards
        came = [frame(at, first.mac, neighbor(hosts[0]), 64, hosts, length) for at in numbers]
        go = [frame(at, neighbor(hosts[1]), second.mac, 63, hosts, length) for at in numbers]
        second.drain()
        for sent in came:
            first.send(sent)
        return second.received(go, seconds)

    def forwards(self, what, cards, frames=FRAMES, length=86):
        """Checks that so many frames pass each way, a window at a time."""
        def one_way(cards, hosts):
            passed = 0
            for begin in range(0, frames, WINDOW):
                numbers = range(begin, min(begin + WINDOW, frames))
                came = self.pass_one_way(cards, hosts, numbers=numbers, length=length)
                passed += came
                if came < len(numbers):
                    break
            return passed
        there, back = one_way(cards, (1, 2)), one_way(cards[::-1], (2, 1))
        self.law(what, there == back == frames, f"{there} and {back} of {frames}")

    def becomes(self, switch, port, up, seconds):
        """Returns the time until `show ports` has the port up or down; none when it did not."""
        return switch.wait(seconds, lambda: switch.port(port)["up"] == up, f"{port} is {'up' if up else 'down'}")

    def change(self, what, switch, port, up, seconds):
        took = self.becomes(switch, port, up, seconds)
        self.law(what, took is not None, f"after {took:.1f} s" if took is not None else f"not in {seconds} s")

    def up(self, model, switch):
        for port in ("left", "right"):
            # e1000e negotiates for a second.
            self.change(f"{model}: {port} comes up", switch, port, True, 10)

    def started(self, model):
        switch = Switch(self.guest, *self.guest.cards[model])
        self.up(model, switch)
        return switch

    def ended(self, model, switch):
        code, said = switch.stop(), switch.said()
        self.law(f"{model}: the switch ends as it should", code == 0 and "every frame accounted for" in said, f"exit code {code}")
        if code:
            print(said)

    def profile(self, model, replay, folder):
        """Checks that a card's driver answers as its profile says."""
        path = f"{folder}/{model}.transcript"
        with open(path, "w") as file:
            file.write(self.guest.transcript(self.guest.cards[model][0]))
        found = subprocess.run([replay, model, path, str(RINGS[model])], capture_output=True, text=True)
        said = found.stdout.splitlines() or [""]
        self.law(f"{model}: the driver answers as its profile says", found.returncode == 0, said[0])
        if found.returncode:
            print("\n".join(said[1:10] + found.stderr.splitlines()))

    def links(self, model, ports):
        """Checks that frames pass, and that links of these ports go down and up."""
        cards = self.guest.cards[model]
        switch = self.started(model)
        driver = switch.port("left")["driver"]
        self.forwards(f"{model}: frames pass by {driver}", cards)
        self.forwards(f"{model}: so do three times as many as its rings have descriptors", cards, 3 * DESCRIPTORS)
        if model == "e1000e":
            flow = switch.port("left")["flow"]
            self.law(f"{model}: answers that call the ring full for ever are not believed", flow["tx_answers"] == 0 and flow["tx_outstanding"], f"{flow['tx_answers']} answer, bound {flow['tx_outstanding']}")
        for length in LENGTHS:
            if length <= MTU[model]:
                self.forwards(f"{model}: so do packets of {length} bytes", cards, 10, length)
        opened = switch.opened()
        self.law(f"{model}: the other cards are left alone", opened == 2, f"{opened} are open")
        if model == "virtio":
            rate = switch.port("left")["rate"]
            self.law(f"{model}: the driver has its arguments", rate is not None and 24e9 < rate <= 25e9, f"rate {rate}")
        for at, port in enumerate(ports):
            self.guest.link(cards[at], False)
            self.change(f"{model}: {port} goes down", switch, port, False, 2)
            passed = self.pass_one_way(cards, (1, 2), 1)
            self.law(f"{model}: nothing passes with {port} down", passed == 0, f"{passed}")
            self.guest.link(cards[at], True)
            self.change(f"{model}: {port} comes up again", switch, port, True, 10)
            self.forwards(f"{model}: frames pass again", cards)
        self.ended(model, switch)

    def starts_down(self, model):
        """Checks a start with a link that is down: it comes up five seconds later, and what follows from its speed is right."""
        cards = self.guest.cards[model]
        self.guest.link(cards[0], False)
        switch = Switch(self.guest, *cards)
        down = switch.port("left")
        self.law(f"{model}: the start says which link is down", "left" in switch.said() and not down["up"], down["down_reason"])
        time.sleep(5)
        self.guest.link(cards[0], True)
        self.change(f"{model}: the link comes up after the start", switch, "left", True, 10)
        up = switch.port("left")
        speed = up["link_speed"]
        self.law(f"{model}: its speed is the device's", up["link_speed_from"] == "device" and speed == 10**9, f"{speed}")
        self.law(f"{model}: the shaper follows the link", up["rate"] == speed // 1000 * 999, f"{up['rate']}")
        sizes = [group["headroom_size"] for group in up["groups"]]
        self.law(f"{model}: so does headroom", down["groups"][3]["headroom_size"] > sizes[3] > 0, f"{sizes}")
        self.forwards(f"{model}: frames pass after a start with the link down", cards)
        self.ended(model, switch)

    def left_behind(self):
        """Returns the numbers of hugepages that are not free, of files in hugetlbfs, and of EAL's folders."""
        said = self.guest.check("awk '/HugePages_Free/ { print $2 }' /proc/meminfo; ls /dev/hugepages | wc -l; ls /var/run/dpdk | wc -l")
        free, files, folders = map(int, said.split())
        return HUGEPAGES - free, files, folders

    def crashes(self, model, rounds):
        """Checks a start with a dead process's hugepages, then restarts of killed switches."""
        self.guest.check(f"fallocate -l $((({HUGEPAGES} - 8) * 2))M /dev/hugepages/deadmap_0")
        seen = set()
        for at in range(rounds):
            switch = Switch(self.guest, *self.guest.cards[model])
            if at == 0:
                gone = self.guest.run("[ ! -e /dev/hugepages/deadmap_0 ]")[1] == 0
                self.law("hugepages that a dead process left count as free, and are freed", gone)
            if at == rounds - 1:
                self.up(model, switch)
                self.forwards(f"{model}: frames pass after crashes", self.guest.cards[model])
            switch.kill()
            seen.add(self.left_behind())
        self.law(f"killed {rounds} times, it leaves no hugepage, and of files as much as at first", len(seen) == 1 and min(seen)[0] == 0,
                 f"(hugepages, files, folders) {sorted(seen)}")

    def removal(self, model):
        """Checks a card that is hot-removed, and put back."""
        left, right = self.guest.cards[model]
        switch = self.started(model)
        self.forwards(f"{model}: frames pass before the removal", (left, right))
        self.guest.remove(left)
        # The slot's button is pressed five seconds before the card goes.
        self.law("a removed card's port is down", self.becomes(switch, "left", False, 10) is not None)
        self.law(f"{model}: the switch goes on without the card", switch.lives() and switch.port("right")["up"])
        self.ended(model, switch)
        self.guest.put_back(left)
        switch = self.started(model)
        self.forwards(f"{model}: frames pass by the card that came back", (left, right))
        self.ended(model, switch)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("switch")
    words.add_argument("transcript")
    words.add_argument("replay")
    words.add_argument("image")
    words.add_argument("--short", action="store_true")
    words.add_argument("--keep", help="folder for logs")
    given = words.parse_args()
    models = ("e1000e", "virtio") if given.short else ("e1000e", "vmxnet3", "virtio")
    # A rig that is told to end leaves no guest behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        folder = given.keep or stack.enter_context(tempfile.TemporaryDirectory())
        begun = time.monotonic()
        guest = Guest(folder, given.switch, given.transcript, given.image, models)
        stack.callback(guest.stop)
        guest.booted()
        for pair in guest.cards.values():
            for card in pair:
                guest.give(card)
        print(f"== the guest is up after {time.monotonic() - begun:.1f} s", flush=True)
        rig = Rig(guest)
        print("   igb: not proved, QEMU has the card from 8.0 on and no rig of this script has it", flush=True)
        for model in models:
            rig.profile(model, given.replay, folder)
            rig.links(model, ("left",) if given.short else ("left", "right"))
        if not given.short:
            rig.starts_down(models[0])
            for model in models:
                rig.removal(model)
        rig.crashes(models[0], 2 if given.short else 100)
    print(f"\n== {rig.failed} things did not hold; {time.monotonic() - begun:.0f} s in all")
    return 1 if rig.failed else 0


if __name__ == "__main__":
    sys.exit(main())
