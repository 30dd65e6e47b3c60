"""npcc-agent in the guests: a transfer's queue pairs as the kernel of each host lists them."""
import json
import re
import shutil
import subprocess
from pathlib import Path

# The program by the loader and the libraries of the machine that built it.
AGENT = "/agent/ld-linux-x86-64.so.2 --library-path /agent /agent/npcc-agent"


def with_agent(image, program, folder):
    """Returns an initramfs in `folder`: the image's, and the agent beside it."""
    tree = Path(folder) / "tree"
    (tree / "agent").mkdir(parents=True)
    loaded = subprocess.check_output(["ldd", program], text=True)
    for path in [program, *re.findall(r"(/\S+) \(0x", loaded)]:
        shutil.copy(path, tree / "agent" / Path(path).name)
    archive = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=b"agent\n" + b"".join(f"agent/{file.name}\n".encode() for file in (tree / "agent").iterdir()),
                             cwd=tree, stdout=subprocess.PIPE, check=True).stdout
    whole = Path(folder) / "initramfs.cpio"
    whole.write_bytes(Path(image, "initramfs.cpio").read_bytes() + archive)
    return str(whole)


class Polls:
    """Polls of the agents of both guests, one after the other, until they are stopped."""

    def __init__(self, guests):
        self.guests = guests
        for guest in guests:
            # Not a child of the guest's shell, which waits for its children.
            guest.check(f"rm -f /tmp/stop; ( ( until [ -e /tmp/stop ]; do {AGENT} show; done > /tmp/leases 2> /tmp/polls < /dev/null; rm /tmp/stop ) & )")

    def stop(self):
        """Returns each guest's leases as (address, partner's or None, own queue pair, partner's), and what the agents said of their largest poll."""
        leases, largest = [], ""
        for guest in self.guests:
            # The loop removes the file as the last thing.
            text = guest.check("touch /tmp/stop; while [ -e /tmp/stop ]; do sleep 0.1; done; cat /tmp/leases")
            rows = map(json.loads, text.splitlines())
            leases.append({(row["to"], row.get("from"), row["queue_pair"], row["remote_queue_pair"]) for row in rows})
            polls = guest.check("cat /tmp/polls").splitlines()
            largest = max([largest, *polls], key=lambda said: int((re.findall(r"^\d+", said) or [0])[0]))
        return leases, largest


def cost(guest, pairs):
    """Makes so many connections of a guest with itself, two queue pairs each, and returns what the agent says of a poll once their traffic is stopped."""
    common = f"ib_write_bw -F -d rxe0 -q {pairs} -s 2 -t 1 -D 600"
    guest.check(f"( ( {common} > /tmp/server.log 2>&1 < /dev/null ) & ); sleep 1; ( ( {common} 127.0.0.1 > /tmp/client.log 2>&1 < /dev/null ) & )")
    count, said = -1, ""
    # Until no more are connected.
    for _ in range(120):
        before, said = count, guest.check(f"sleep 5; {AGENT} show 2>&1 > /dev/null", 600).strip()
        count = int(said.split()[0])
        if count == before and count > 0:
            break
    guest.check("killall -STOP ib_write_bw")
    polls = [guest.check(f"{AGENT} show 2>&1 > /dev/null", 600).strip() for _ in range(5)]
    return "; ".join(polls)
