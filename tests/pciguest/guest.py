"""A guest with network cards on emulated PCI, behind an emulated IOMMU, and the switch in it.

A card's other end is a UDP socket of this process: one datagram is one frame.
"""
import contextlib
import json
import socket
import subprocess
import threading
import time

from machine import GuestError, Machine

# QEMU's options of each model.
MODELS = {
    "e1000e": "e1000e",
    "vmxnet3": "vmxnet3",
    # Options required behind an IOMMU.
    "virtio": "virtio-net-pci,disable-legacy=on,iommu_platform=on",
}
# MTU of the ports of each model; vmxnet3 takes no more.
MTU = {"e1000e": 9100, "vmxnet3": 9000, "virtio": 9100}
# Driver arguments that the switch passes after the address.
ARGUMENTS = {"virtio": ",speed=25000"}
HUGEPAGES = 400
HOST = "127.0.0.1"


class Card:
    """The `slot`-th card, counted from 1, in a PCI Express slot of its own: without one it could not be hot-removed."""

    def __init__(self, model, slot):
        self.model, self.name, self.slot = model, f"nic{slot}", slot
        self.address, self.mac = f"0000:{slot:02x}:00.0", bytes((2, 0, 0, 0, 0, slot))
        self.wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.wire.bind((HOST, 0))
        # QEMU's end: a port that was free a moment ago.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind((HOST, 0))
            self.far = other.getsockname()

    @property
    def netdev(self):
        here, there = self.wire.getsockname()[1], self.far[1]
        return f"socket,id=net{self.slot},udp={HOST}:{here},localaddr={HOST}:{there}"

    @property
    def device(self):
        mac = self.mac.hex(":")
        return f"{MODELS[self.model]},id={self.name},bus=slot{self.slot},netdev=net{self.slot},mac={mac},romfile="

    @property
    def arguments(self):
        slot = f"pcie-root-port,id=slot{self.slot},chassis={self.slot},slot={self.slot}"
        return ["-device", slot, "-netdev", self.netdev, "-device", self.device]

    def send(self, frame):
        self.wire.sendto(frame, self.far)

    @contextlib.contextmanager
    def echo(self):
        """Sends each frame back meanwhile."""
        ended = threading.Event()

        def send_back():
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    self.send(self.wire.recv(65536))
        self.drain()
        self.wire.settimeout(0.1)
        thread = threading.Thread(target=send_back)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def drain(self):
        """Discards the frames that have arrived."""
        self.wire.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.wire.recv(65536)

    def received(self, wanted, timeout):
        """Returns the number of these frames that arrived in time, each counted once."""
        missing, deadline = list(wanted), time.monotonic() + timeout
        while missing and (left := deadline - time.monotonic()) > 0:
            self.wire.settimeout(left)
            try:
                frame = self.wire.recv(65536)
            except TimeoutError:
                break
            if frame in missing:
                missing.remove(frame)
        return len(wanted) - len(missing)


class Guest(Machine):
    """A guest with two cards of each model."""

    def __init__(self, folder, switch, transcript, image, models):
        self.cards = {model: (Card(model, 2 * at + 1), Card(model, 2 * at + 2)) for at, model in enumerate(models)}
        layer = f"{folder}/initramfs.cpio"
        subprocess.run([f"{__file__.removesuffix('guest.py')}layer", switch, transcript, image, layer], check=True)
        monitor = f"{folder}/monitor"
        super().__init__(
            folder, "guest", image,
            ["-machine", "q35,kernel-irqchip=split,accel=tcg", "-cpu", "max", "-smp", "2", "-m", "1536",
             "-device", "intel-iommu,intremap=on,aw-bits=48", "-monitor", f"unix:{monitor},server=on,wait=off",
             *(word for pair in self.cards.values() for card in pair for word in card.arguments)],
            f"intel_iommu=on iommu=pt hugepages={HUGEPAGES}", initrd=layer)
        self.monitor = self.connected(monitor)
        self.order("")

    def order(self, command):
        """Runs a command in QEMU's monitor and returns its answer."""
        self.monitor.settimeout(10)
        self.monitor.sendall(command.encode() + b"\n" if command else b"")
        text = b""
        while not text.endswith(b"(qemu) "):
            text += self.monitor.recv(65536)
        # The first line is an echo of the command, character by character.
        said = text.decode(errors="replace").replace("\r", "").removesuffix("(qemu) ").partition("\n")[2]
        if "Error" in said:
            raise GuestError(f"QEMU: {command}: {said}")
        return said

    def give(self, card):
        """Gives a card to DPDK, when the kernel has found it."""
        for _ in range(50):
            if self.run(f"[ -e /sys/bus/pci/devices/{card.address} ]")[1] == 0:
                return self.check(f"give {card.address}")
            time.sleep(0.1)
        raise self.broken(f"has no {card.address}")

    def transcript(self, card):
        """Returns a transcript of the driver's answers about a card that no switch has open."""
        # The first core waits for the rig; 64 MB are the two pools.
        with card.echo():
            return self.check(f"transcript -l 1 --in-memory --no-telemetry --log-level=error -m 128 -a {card.address} 2>&1", 120)

    def link(self, card, up):
        self.order(f"set_link {card.name} {'on' if up else 'off'}")

    def remove(self, card):
        """Requests the removal of a card: vfio releases it when the process that has it open closes it."""
        self.order(f"device_del {card.name}")

    def put_back(self, card):
        """Adds the card to its slot again, once it has been released."""
        for _ in range(100):
            if f'"{card.name}"' not in self.order("info pci"):
                break
            time.sleep(0.1)
        # The netdev outlives the device.
        self.order(f"netdev_del net{card.slot}")
        self.order(f"netdev_add {card.netdev}")
        self.order(f"device_add {card.device}")
        self.give(card)


class Switch:
    """One run of the switch in the guest, between two of its cards."""

    def __init__(self, guest, left, right):
        self.guest = guest
        ports = "".join(f"""
  - {{ name: {name}, device: "{card.address}{ARGUMENTS.get(card.model, '')}", mtu: {MTU[card.model]}, addresses: [10.0.{host}.1/24] }}"""
                        for name, host, card in (("left", 1, left), ("right", 2, right)))
        neighbors = "".join(f"""
  - {{ address: 10.0.{host}.2, port: {name}, mac: "{neighbor(host).hex(':')}" }}"""
                            for name, host in (("left", 1), ("right", 2)))
        config = f"""version: 1
dpdk: {{ hugepages: on, link_wait: 3s }}
telemetry: {{ socket: /tmp/switch.sock }}
ports:{ports}
neighbors:{neighbors}
buffer: {{ pool: 16MB }}
"""
        # One line: the guest reads no more at a time.
        text = config.replace("\n", "\\n")
        guest.check(f"printf '{text}' > /tmp/switch.yaml")
        # A killed switch leaves its socket behind.
        guest.check("rm -f /tmp/switch.sock")
        guest.check("npcc-switch run -c /tmp/switch.yaml > /tmp/switch.log 2>&1 < /dev/null & switch=$!")
        # It listens before it has its devices, and answers when it forwards.
        if self.wait(30, lambda: self.show()[1] == 0, "it answered") is None:
            raise GuestError(f"the switch does not answer:\n{self.said()}")

    def wait(self, seconds, holds, what):
        """Waits until `holds` returns true; returns the time it took, or none if it does not in time."""
        begun = time.monotonic()
        while True:
            # A request takes a second itself: the time counts from when it is sent.
            asked = time.monotonic() - begun
            if holds():
                return asked
            if not self.lives():
                raise GuestError(f"the switch ended before {what}:\n{self.said()}")
            if asked > seconds:
                return None
            time.sleep(0.05)

    def lives(self):
        return self.guest.run("kill -0 $switch")[1] == 0

    def said(self):
        return self.guest.run("tail -n 30 /tmp/switch.log")[0]

    def show(self):
        return self.guest.run("npcc-switch show ports --json --socket /tmp/switch.sock")

    def port(self, name):
        """Returns a row of `show ports`."""
        text, code = self.show()
        if code:
            raise GuestError(f"the switch does not answer: {text}\n{self.said()}")
        rows = json.loads(text)
        return next(row for row in rows if row["name"] == name)

    def opened(self):
        """Returns the number of cards it has open: each is in an IOMMU group of its own."""
        return int(self.guest.check("ls -l /proc/$switch/fd | grep -c '/dev/vfio/[0-9]'"))

    def kill(self):
        """Kills it as the kernel's OOM killer does."""
        self.guest.run("kill -KILL $switch; wait $switch; true")

    def stop(self):
        """Stops it with SIGTERM and returns its exit code."""
        return int(self.guest.check("kill $switch; wait $switch; echo $?", 60).split()[-1])


def neighbor(host):
    """Returns the MAC address of the host behind a port."""
    return bytes((2, 0, 0, 0, host, 2))
