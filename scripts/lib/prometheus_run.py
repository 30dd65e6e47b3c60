"""A real Prometheus and a loaded switch: prometheus_run.py SWITCH SECONDS.

The switch forwards from an endless capture to a sink, with a queue that NPCC watches. Prometheus scrapes it once a second; every
other turn it is told to scrape nothing. The cycles a frame of both kinds of turns are compared in pairs: the worker times one busy turn
in 64 by itself, whether or not somebody looks. Fails when a scrape fails or takes over half a second, or when a frame costs over
2 % more with scrapes than without, beyond twice the standard error.
"""
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

TURN = 5

CONFIG = """version: 1
dpdk: {{ eal_args: ["--no-pci", "--in-memory"] }}
ports:
  - {{ name: dc0, device: "net_pcap0,rx_pcap=in.pcap,infinite_rx=1", mac: "02:00:00:00:01:01", mtu: 1500, addresses: [10.0.1.1/24] }}
  - {{ name: wan0, device: "net_null0,no-rx=1", mtu: 1500, speed: 100G, addresses: [10.0.12.1/24], npcc: {{ queues: [3] }} }}
routes: [ {{ prefix: 10.0.2.0/24, via: 10.0.12.2 }} ]
neighbors: [ {{ address: 10.0.12.2, port: wan0, mac: "02:00:00:00:02:02" }}, {{ address: 10.0.1.3, port: dc0, mac: "02:00:00:00:01:03" }} ]
qos: {{ profile: lossy, dscp_to_priority: {{ 26: 3 }} }}
telemetry: {{ socket: {folder}/switch.sock, http: "127.0.0.1:{port}" }}
"""

SCRAPES = """global: {{ scrape_interval: 1s, scrape_timeout: 900ms }}
scrape_configs: [ {jobs} ]
rule_files: ["{rules}"]
"""
JOB = """{{ job_name: npcc-switch, static_configs: [ {{ targets: ["127.0.0.1:{port}"] }} ] }}"""


def free():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def soon(what, holds):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit(f"error: {what} did not come in 30 s")


def timed(switch, folder):
    """Cycles and frames of the turns that the worker timed so far."""
    ask = [switch, "show", "workers", "--json", "--socket", f"{folder}/switch.sock"]
    for patience in (3, 1, 0):
        out = subprocess.run(ask, capture_output=True, text=True)
        if out.returncode == 0:
            break
        # On a machine with other work an answer may come too late.
        print(f"asking again: {out.stderr.strip()}", file=sys.stderr)
        time.sleep(patience)
    else:
        sys.exit("error: the switch does not answer; it said: " + (pathlib.Path(folder) / "log").read_text())
    worker = json.loads(out.stdout)[0]
    return sum(worker["cycles"].values()) * worker["timed_frames"], worker["timed_frames"]


def cycles_a_frame(switch, folder):
    cycles, frames = timed(switch, folder)
    time.sleep(TURN)
    more_cycles, more_frames = timed(switch, folder)
    return (more_cycles - cycles) / (more_frames - frames)


def measured(switch, folder, scrape, pairs):
    """Cycles a frame without and with scrapes, turn by turn."""
    turns = []
    for number in range(pairs):
        pair = {}
        # Which comes first changes, so that a drift falls on both.
        for scraped in (False, True) if number % 2 else (True, False):
            scrape(scraped)
            time.sleep(1)
            pair[scraped] = cycles_a_frame(switch, folder)
        turns.append((pair[False], pair[True]))
    scrape(True)
    return turns


def asked(api, query):
    answer = json.loads(get(f"{api}/api/v1/query?" + urllib.parse.urlencode({"query": query})))
    return float(answer["data"]["result"][0]["value"][1])


def report(turns, api, seconds):
    window = f"{2 * seconds + 60}s"
    least_up = asked(api, f'min_over_time(up{{job="npcc-switch"}}[{window}])')
    scrapes = asked(api, f'count_over_time(up{{job="npcc-switch"}}[{window}])')
    series = asked(api, 'scrape_samples_scraped{job="npcc-switch"}')
    mean = asked(api, f'avg_over_time(scrape_duration_seconds{{job="npcc-switch"}}[{window}])')
    longest = asked(api, f'max_over_time(scrape_duration_seconds{{job="npcc-switch"}}[{window}])')
    without = statistics.mean(turn[0] for turn in turns)
    more = [scraped - alone for alone, scraped in turns]
    error = statistics.stdev(more) / len(more) ** 0.5
    spread = statistics.stdev(turn[0] for turn in turns)
    print(f"scrapes {scrapes:.0f}, series {series:.0f}, a scrape {1e3 * mean:.1f} ms, longest {1e3 * longest:.1f} ms")
    print(f"cycles a frame without {without:.1f} (turns differ by {spread:.1f}), with scrapes {statistics.mean(more):+.2f} +- {error:.2f}")
    if least_up < 1 or scrapes < 0.8 * seconds:
        sys.exit("error: scrapes failed or are missing")
    if longest > 0.5:
        sys.exit("error: a scrape took over half a second")
    if statistics.mean(more) - 2 * error > 0.02 * without:
        sys.exit("error: a frame costs more while the switch is scraped")


def main():
    switch, seconds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    rules = pathlib.Path(__file__).resolve().parents[2] / "contrib/prometheus/alerts.yml"
    with tempfile.TemporaryDirectory() as folder:
        port, own = free(), free()
        api = f"http://127.0.0.1:{own}"
        place = pathlib.Path(folder)
        (place / "switch.yaml").write_text(CONFIG.format(folder=folder, port=port))

        def scrape(on):
            jobs = JOB.format(port=port) if on else ""
            (place / "prometheus.yml").write_text(SCRAPES.format(jobs=jobs, rules=rules))
            if len(running) == 2:
                urllib.request.urlopen(urllib.request.Request(f"{api}/-/reload", method="POST"), timeout=10).close()

        subprocess.run([switch, "gen-pcap", "-o", "in.pcap", "--qps", "64", "--count", "2048"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        log = open(place / "log", "w")
        running = [subprocess.Popen([switch, "run", "-c", "switch.yaml"], cwd=folder, stdout=log, stderr=log)]
        try:
            soon("the switch", lambda: get(f"http://127.0.0.1:{port}/metrics"))
            scrape(True)
            # Beside the control core, not the worker's: Prometheus is another machine's load.
            running.append(subprocess.Popen(
                ["taskset", "-c", "0", "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{own}", "--web.enable-lifecycle", "--log.level=error"], stdout=log, stderr=log))
            soon("Prometheus", lambda: get(f"{api}/-/ready"))
            soon("a scrape", lambda: json.loads(get(f"{api}/api/v1/query?query=up"))["data"]["result"])
            turns = measured(switch, folder, scrape, max(2, -(-seconds // TURN)))
            time.sleep(2)
            report(turns, api, seconds)
        finally:
            for one in reversed(running):
                one.terminate()
                one.wait()
            log.close()


main()
