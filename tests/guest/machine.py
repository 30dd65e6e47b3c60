"""A guest: QEMU without KVM, Debian's kernel, and a shell on a virtio port."""
import re
import socket
import subprocess
import time


class GuestError(Exception):
    pass


class Machine:
    """A running guest. `name` names its files in `folder`; `arguments` are QEMU's beside those of every guest, `append` goes on the kernel's
    command line, `launcher` stands before QEMU's name."""

    def __init__(self, folder, name, image, arguments, append="", launcher=(), initrd=None):
        self.name, self.console, path = name, f"{folder}/{name}.console", f"{folder}/{name}.rig"
        self.process = subprocess.Popen(
            [*launcher, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
             "-kernel", f"{image}/vmlinuz", "-initrd", initrd or f"{image}/initramfs.cpio",
             # The kernel's check of the timer counts ticks in a time of the host: on a busy one it panics.
             "-append", f"console=ttyS0 quiet panic=-1 no_timer_check {append}",
             "-serial", f"file:{self.console}",
             # Not a serial port: a busy guest's loses characters.
             "-device", "virtio-serial-pci", "-chardev", f"socket,id=rig,path={path},server=on,wait=off",
             "-device", "virtserialport,chardev=rig,name=rig", *arguments],
            stdin=subprocess.DEVNULL, stdout=open(f"{folder}/{name}.qemu", "w"), stderr=subprocess.STDOUT)
        self.line = self.connected(path)
        self.unread = b""

    def connected(self, path):
        """Connects to a socket of QEMU's."""
        line = socket.socket(socket.AF_UNIX)
        for _ in range(100):
            try:
                line.connect(path)
                return line
            except OSError:
                if self.process.poll() is not None:
                    raise GuestError(f"QEMU of {self.name} ended with code {self.process.returncode}")
                time.sleep(0.1)
        self.stop()
        raise GuestError(f"QEMU of {self.name} opens no {path}")

    def answer(self, timeout):
        """Returns what the last command printed, and its exit code."""
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
        """Returns an error with what happened, and the end of the guest's console."""
        with open(self.console, errors="replace") as console:
            last = "".join(console.readlines()[-20:])
        return GuestError(f"{self.name} {how}; the end of its console:\n{last}")

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
            raise GuestError(f"{self.name}: {command}: exit code {code}\n{text}")
        return text

    def stop(self):
        if self.process.poll() is None:
            # A launcher such as `ip netns exec` becomes QEMU: the signal reaches it.
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
