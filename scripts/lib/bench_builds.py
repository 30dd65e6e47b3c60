"""Builds of ours against each other: bench_builds.py SIZE ROUNDS BUILD [BUILD...]; `testpmd` may be one of them.

Source, sink and what is measured are bench_peers.py's. There the question is how far others are, and few starts answer it; here it
is whether a change gains anything, and starts of one and the same program differ by 2 ns and more: each lies elsewhere in memory and
has a hash seed of its own. So every round starts all builds anew, in random order, and of each start counts the least of eight short
turns. What is compared are the starts of one round, with the first build.
"""
import contextlib
import os
import random
import signal
import statistics
import sys
import tempfile
import time

import bench_peers
from bench_peers import Ours, Testpmd, capture, end, turn

TURNS = 8
# Shorter than there: many starts say more than long ones. All start together, and settle together.
bench_peers.SETTLE, bench_peers.WARM, bench_peers.TURN = 0.05, 0.02, 0.12
TOGETHER = 1.2


def leasts(builds, folder, size):
    """One round: of each build the least of its turns."""
    with contextlib.ExitStack() as ends:
        running = []
        for build in random.sample(builds, len(builds)):
            place = f"{folder}/{builds.index(build)}"
            forwarder = Testpmd if build == "testpmd" else Ours
            one = forwarder(place, build, size)
            ends.callback(end, one)
            running.append((build, one))
        time.sleep(TOGETHER)
        for _, one in running:
            os.kill(one.process.pid, signal.SIGSTOP)
        turns = [(build, turn(one)) for _ in range(TURNS) for build, one in running]
    return {build: min(ns for whose, ns in turns if whose == build) for build in builds}


def main():
    size, rounds, builds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if len(set(builds)) < 2 or len(set(builds)) < len(builds):
        sys.exit("give two builds or more, each once")
    for build in builds:
        if build != "testpmd" and not os.access(build, os.X_OK):
            sys.exit(f"{build} is no program: give the path of a release build, or testpmd")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(len(builds)):
            os.mkdir(f"{folder}/{number}")
            capture(f"{folder}/{number}/{size}.pcap", size)
        all_rounds = [leasts(builds, folder, size) for _ in range(rounds)]
    print(f"{size} bytes, {rounds} starts of each, ns of CPU a frame\n  least  median  less the first, mean and standard error")
    for build in builds:
        ns = [one[build] for one in all_rounds]
        less = [one[build] - one[builds[0]] for one in all_rounds]
        error = statistics.stdev(less) / rounds**0.5 if rounds > 1 else float("nan")
        print(f"{min(ns):>7.1f}{statistics.median(ns):>8.1f}{statistics.mean(less):>+12.2f} +- {error:.2f}   {build}")


if __name__ == "__main__":
    main()
