"""What a run of the demo did, from its totals: demo_summary.py STATS.json."""
import json
import sys

stats = json.load(open(sys.argv[1]))
npcc = stats["npcc"]
ports = {port["name"]: port for port in stats["ports"]}
queue = ports["wan0"]["queues"][3]
seconds = queue["peak"] * 8 / ports["wan0"]["rate"]
paired = ", ".join(f"{count} by {evidence}" for evidence, count in npcc["paired"].items() if evidence != "none")


def reaction(times):
    return f"p50 {times['p50']:.1f} us, p99 {times['p99']:.1f} us of {times['count']}" if times["count"] else "none"


print(f"frames in       {sum(port['rx']['packets'] for port in ports.values()):,}")
print(f"queue wan0:3    peak {queue['peak']:,} bytes, {seconds:.1f} s of the link; {queue['ecn_marked']:,} frames marked CE")
print(f"flows           {npcc['flows']}; sender's QP known: {paired or 'none'}")
print(f"CNPs sent       {npcc['cnps_sent']:,}")
print(f"reaction        to shallow {reaction(npcc['reaction_us'])}; to hard {reaction(npcc['reaction_hard_us'])}")
