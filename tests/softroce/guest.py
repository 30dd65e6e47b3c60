"""A guest: QEMU without KVM, Debian's kernel, one network card on a TAP device, and a shell on a serial port."""
import re
import socket
import subprocess
import time

COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
GIDS = "/sys/class/infiniband/rxe0/ports/1/gids"
MTU = 4200          # of the device: room for a path MTU of 4096


class GuestError(Exception):
    pass


class Guest:
    """`host` is its number: subnet 10.0.HOST.0/24 and 2001:db8:HOST::/64, itself .2, the switch .1."""

    def __init__(self, folder, space, image, host, tap):
        self.host, self.console, path = host, f"{folder}/guest{host}.log", f"{folder}/guest{host}.sock"
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", space, "qemu-system-x86_64", "-accel", "tcg", "-smp", "1", "-m", "256", "-nodefaults",
             "-no-user-config", "-nographic", "-no-reboot", "-kernel", f"{image}/vmlinuz", "-initrd", f"{image}/initramfs.cpio",
             "-append", f"console=ttyS0 quiet panic=-1 rig.host={host} rig.mtu={MTU}",
             "-serial", f"file:{self.console}", "-serial", f"unix:{path},server=on,wait=off",
             "-netdev", f"tap,id=n0,ifname={tap},script=no,downscript=no",
             # Whole frames with their checksums: what a wire would carry.
             "-device", f"virtio-net-pci,netdev=n0,mac={self.mac},romfile=,csum=off,gso=off,guest_csum=off,host_mtu={MTU}"],
            stdin=subprocess.DEVNULL, stderr=open(f"{folder}/qemu{host}.log", "w"))
        self.line = socket.socket(socket.AF_UNIX)
        for _ in range(100):
            try:
                self.line.connect(path)
                break
            except OSError:
                if self.process.poll() is not None:
                    raise GuestError(f"QEMU of guest {host} ended with code {self.process.returncode}")
                time.sleep(0.1)
        self.unread = b""
        self.known = set()

    @property
    def mac(self):
        return f"02:00:00:00:0{self.host}:02"

    def address(self, version):
        return f"10.0.{self.host}.2" if version == 4 else f"2001:db8:{self.host}::2"

    def answer(self, timeout):
        """What the last command printed, and its exit code."""
        self.line.settimeout(timeout)
        while not (found := re.search(rb"^@end (\d+)\r?\n", self.unread, re.M)):
            try:
                more = self.line.recv(65536)
            except TimeoutError:
                raise GuestError(f"guest {self.host} gave no answer in {timeout} s; its console is {self.console}")
            if not more:
                raise GuestError(f"guest {self.host} is gone; its console is {self.console}")
            self.unread += more
        text, code = self.unread[:found.start()], int(found.group(1))
        self.unread = self.unread[found.end():]
        return text.decode(errors="replace"), code

    def booted(self):
        _, code = self.answer(180)
        if code:
            raise GuestError(f"guest {self.host} did not come up; its console is {self.console}")

    def run(self, command, timeout=60):
        self.line.sendall(command.encode() + b"\n")
        return self.answer(timeout)

    def check(self, command, timeout=60):
        text, code = self.run(command, timeout)
        if code:
            raise GuestError(f"guest {self.host}: {command}: exit code {code}\n{text}")
        return text

    def gid(self, version):
        """Index of the GID of its address."""
        wanted = "0000:ffff:0a00" if version == 4 else "2001:0db8"
        return int(self.check(f"cd {GIDS} && grep -l {wanted} *").split()[0])

    def counters(self):
        """rxe's own counters."""
        for _ in range(3):
            text = self.check(f"cd {COUNTERS} && grep -s . *")
            found = {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", text)}
            # A busy guest's serial port may swallow characters.
            self.known = self.known or set(found)
            if set(found) == self.known:
                return found
        raise GuestError(f"guest {self.host}: counters cannot be read:\n{text}")

    def stop(self):
        if self.process.poll() is None:
            # `ip netns exec` becomes QEMU: the signal reaches it.
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.line.close()
