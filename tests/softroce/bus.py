"""A bus in the rig's namespace: what npcc-agent reports in a guest reaches the switch by nats-server and npcc-feed."""
import base64
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

from agent import AGENT

SHIPPED = Path(__file__).parents[2] / "packaging/feed"
# Address of the server on the management network of the guest, and of the guest.
SERVER, GUEST = "10.9.1.1", "10.9.1.2"
HOST = "gpu-1"


def settings(text, password_file, **keys):
    """Shipped settings with this server, this file with the password, and further keys."""
    text = re.sub(r"servers: .*", f"servers: [nats://{SERVER}:4222]", text)
    text = re.sub(r"password_file: .*", f"password_file: {password_file}", text)
    text = re.sub(r"^switch: .*\n", "", text, flags=re.M)
    return text + "".join(f"{key}: {value}\n" for key, value in keys.items())


class Bus:
    """A server, a box's feed, and the agent of one guest; `listed` collects the rows of the host in `show peers` every 0.2 s."""

    def __init__(self, folder, space, feed, switch, guest):
        self.switch, self.guest, self.listed, self.over = switch, guest, [], threading.Event()
        server = Path(folder, "nats.conf")
        server.write_text((SHIPPED / "nats-pair.conf").read_text().replace("listen: 127.0.0.1:4222", f"listen: {SERVER}:4222"))
        password, own = Path(folder, "feed.password"), Path(folder, "feed.yaml")
        password.touch(0o600)
        password.write_text("change-me-1\n")
        own.write_text(settings((SHIPPED / "feed.yaml").read_text(), password, leases="true",
                                switch=f"{{ socket: {switch.socket}, control: {switch.socket} }}"))
        self.processes = [space.start(*command, stdout=open(f"{folder}/{name}.log", "w"), stderr=subprocess.STDOUT)
                          for name, command in (("nats", ("nats-server", "-c", server)), ("feed", (feed, "run", "-c", own)))]
        guest.check(f"/usr/bin/ip addr add {GUEST}/24 dev eth1 && /usr/bin/ip link set eth1 up")
        agent = base64.b64encode(settings((SHIPPED / "agent.yaml").read_text(), "/tmp/password").encode()).decode()
        # A command of a guest is one line.
        guest.check(f"echo {agent} | base64 -d > /tmp/agent.yaml; (umask 077; echo change-me-{HOST} > /tmp/password)")
        # Not a child of the guest's shell, which waits for its children.
        guest.check(f"( ( {AGENT} run -c /tmp/agent.yaml > /tmp/agent.log 2>&1 < /dev/null ) & )")
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.over.wait(0.2):
            peers = self.switch.show("peers")["peers"]
            self.listed += [peer for peer in peers if peer["peer"] == f"host:{HOST}"]

    def stop(self):
        """Ends all; returns the largest number of leases that the switch held at once, the number it accepted, and those it refused by reason."""
        time.sleep(0.5)
        self.over.set()
        self.thread.join()
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        self.guest.check("killall ld-linux-x86-64.so.2")
        last = self.listed[-1] if self.listed else {"accepted": 0, "refused": {}}
        return max((peer["held"] for peer in self.listed), default=0), last["accepted"], last["refused"]

    def logs(self, folder):
        """Returns the last lines that agent and feed printed."""
        said = self.guest.check("tail -n 5 /tmp/agent.log")
        return said + "".join(Path(folder, "feed.log").read_text().splitlines(True)[-5:])
