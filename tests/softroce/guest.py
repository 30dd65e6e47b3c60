"""A host with soft-RoCE: a guest with one network card on a TAP device."""
import re

from machine import Machine

COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
GIDS = "/sys/class/infiniband/rxe0/ports/1/gids"
MTU = 4200          # of the device: room for a path MTU of 4096


class Guest(Machine):
    """A guest with soft-RoCE. `host` is its number: subnet 10.0.HOST.0/24 and 2001:db8:HOST::/64, itself .2, the switch .1. `management`
    is the TAP device of a second card, which the guest leaves down."""

    def __init__(self, folder, space, image, host, tap, initrd=None, memory=256, management=None):
        self.host = host
        second = ["-netdev", f"tap,id=n1,ifname={management},script=no,downscript=no", "-device", "virtio-net-pci,netdev=n1,romfile="]
        super().__init__(
            folder, f"guest{host}", image,
            # Room for a second processor: with one alone the emulation leaves out the guest's memory barriers, though the devices
            # run on a thread of their own, and sometimes a packet of the guest's waits for ever for a kick that was not sent.
            ["-accel", "tcg", "-smp", "1,maxcpus=2", "-m", str(memory),
             "-netdev", f"tap,id=n0,ifname={tap},script=no,downscript=no",
             # Whole frames with their checksums: what a wire would carry.
             "-device", f"virtio-net-pci,netdev=n0,mac={self.mac},romfile=,csum=off,gso=off,guest_csum=off,host_mtu={MTU}",
             *(second if management else [])],
            f"rig.host={host} rig.mtu={MTU}", ("ip", "netns", "exec", space), initrd)

    @property
    def mac(self):
        return f"02:00:00:00:0{self.host}:02"

    def address(self, version):
        return f"10.0.{self.host}.2" if version == 4 else f"2001:db8:{self.host}::2"

    def gid(self, version):
        """Returns the index of the GID of its address."""
        wanted = "0000:ffff:0a00" if version == 4 else "2001:0db8"
        return int(self.check(f"cd {GIDS} && grep -l {wanted} *").split()[0])

    def counters(self):
        """Returns rxe's own counters."""
        text = self.check(f"cd {COUNTERS} && grep -s . *")
        return {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", text)}
