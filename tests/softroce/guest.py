"""A guest: QEMU without KVM, Debian's kernel, one network card on a TAP device, and a shell on a virtio port."""
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
            # Room for a second processor: with one alone the emulation leaves out the guest's memory barriers, though the devices
            # run on a thread of their own, and now and then a packet of the guest's waits for ever for a kick that was not sent.
            ["ip", "netns", "exec", space, "qemu-system-x86_64", "-accel", "tcg", "-smp", "1,maxcpus=2", "-m", "256", "-nodefaults",
             "-no-user-config", "-nographic", "-no-reboot", "-kernel", f"{image}/vmlinuz", "-initrd", f"{image}/initramfs.cpio",
             "-append", f"console=ttyS0 quiet panic=-1 rig.host={host} rig.mtu={MTU}",
             "-serial", f"file:{self.console}",
             # Not a serial port: a busy guest's loses characters.
             "-device", "virtio-serial-pci", "-chardev", f"socket,id=rig,path={path},server=on,wait=off",
             "-device", "virtserialport,chardev=rig,name=rig",
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

    @property
    def mac(self):
        return f"02:00:00:00:0{self.host}:02"

    def address(self, version):
        return f"10.0.{self.host}.2" if version == 4 else f"2001:db8:{self.host}::2"

    def answer(self, timeout):
        """What the last command printed, and its exit code."""
        self.line.settimeout(timeout)
        while not (found := re.search(rb"^@end (\d+)\n", self.unread, re.M)):
            try:
                more = self.line.recv(65536)
            except TimeoutError:
                raise self.broken(f"gave no answer in {timeout} s")
            if not more:
                raise self.broken("is gone")
            self.unread += more
        text, code = self.unread[:found.start()], int(found.group(1))
        self.unread = self.unread[found.end():]
        return text.decode(errors="replace"), code

    def broken(self, how):
        """What happened, and the last that the guest's kernel said."""
        with open(self.console, errors="replace") as console:
            last = "".join(console.readlines()[-20:])
        return GuestError(f"guest {self.host} {how}; the end of its console:\n{last}")

    def booted(self):
        _, code = self.answer(180)
        if code:
            raise self.broken("did not come up")

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
        text = self.check(f"cd {COUNTERS} && grep -s . *")
        return {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", text)}

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
