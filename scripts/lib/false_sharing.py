"""Lines of memory that two workers use: lackey's trace on standard input, and the marks' offsets in the program.

false_sharing.py TAKER OWNER RIG FRAMES BINARY: offsets in hex of the functions that mark whose turn it is; frames in the trace.
A line is shared when one worker writes what the other reads or writes; falsely, when they never touch the same octet of it.
"""
import collections
import subprocess
import sys

LINE = 64
# The rig runs both workers on one stack, which workers of a switch do not share.
STACK = 0x1F00000000


def place(binary, code):
    """The function and, where the program tells, the lines of an instruction, the innermost first."""
    lines = subprocess.run(["addr2line", "-Cfie", binary, hex(code)], capture_output=True, text=True).stdout.splitlines()
    return f"{lines[0] if lines else hex(code)} ({' < '.join(lines[1::2][:3])})"


def main():
    marks = dict(zip((int(word, 16) for word in sys.argv[1:4]), "AB-"))
    frames, binary = int(sys.argv[4]), sys.argv[5]
    base, who, turns, code = None, "-", 0, 0
    written = {"A": collections.Counter(), "B": collections.Counter()}
    touched = {"A": collections.Counter(), "B": collections.Counter()}
    # The instructions that touched a line, by worker: what a finding is traced by.
    users = {}
    # The program is loaded at a page of valgrind's choice: the first mark tells which.
    low = {mark & 0xFFF: mark for mark in marks}
    for text in sys.stdin:
        kind = text[:2]
        if kind == "I ":
            code = int(text[3:text.index(",")], 16)
            if base is None and code & 0xFFF in low and code > 0x1000:
                guess = code - low[code & 0xFFF]
                if guess % 0x1000 == 0 and guess in (0x108000, 0x400000, 0x0):
                    base = guess
            if base is not None and code - base in marks:
                who = marks[code - base]
                turns += 1
            continue
        # The first turns fill caches and learn flows.
        if who == "-" or turns < 90 or kind not in (" S", " L", " M"):
            continue
        address, size = text[3:].split(",")
        address, size = int(address, 16), int(size)
        if address >= STACK:
            continue
        line, first = divmod(address, LINE)
        octets = ((1 << size) - 1) << first
        for at, mask in ((line, octets & (1 << LINE) - 1), (line + 1, octets >> LINE)):
            if not mask:
                continue
            touched[who][at] |= mask
            users.setdefault((who, at), set()).add((kind.strip(), first if at == line else 0, code))
            if kind != " L":
                written[who][at] |= mask
    both = [at for at in touched["A"] if at in touched["B"] and (written["A"][at] or written["B"][at])]
    false = [at for at in both if not written["A"][at] & touched["B"][at] and not written["B"][at] & touched["A"][at]]
    contended = [at for at in both if written["A"][at] and written["B"][at]]
    print(f"{turns} turns, {frames} frames; lines: {len(touched['A'])} of the taker, {len(touched['B'])} of the owner, {len(both)} of both,"
          f" {len(contended)} of these written by both, {len(false)} falsely shared")
    if turns < 100 or not both:
        sys.exit("the trace shows no crossing: are the marks right?")
    for at in false or ("--contended" in sys.argv and contended) or ():
        for side in "AB":
            for access, octet, by in sorted(users[side, at])[:8]:
                did = {"L": "reads", "S": "writes", "M": "changes"}[access]
                print(f"  line {at * LINE:#x}: {side} {did} octet {octet} in {place(binary, by - base)}")
    sys.exit(1 if false else 0)


if __name__ == "__main__":
    main()
