//! A log that nobody takes: a switch whose standard output and error are pipes that nobody reads, and whose journal hangs, starts, forwards,
//! answers and ends like any other.
//!
//! Needs root.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeWriter, Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;

use npcc_api::client::blocking as client;
use npcc_api::protocol::{Reply, Request};

use crate::common::manager::fields;
use crate::common::net::{Net, python, run};
use crate::common::switch::Switch;
use crate::common::{Lab, NULL_PORTS, Running, alone, assert_success};
use npcc_testkit::wait;

/// Configuration of two TAPs; DPDK says much at its start.
const CONFIG: &str = "version: 1
cores: { control: 0, workers: [1], idle: adaptive }
ports:
  - { name: dc0, device: 'net_tap0,iface=dc0', mac: '02:00:00:00:01:01', mtu: 1500, addresses: [10.0.1.1/24], speed: 10G }
  - { name: wan0, device: 'net_tap1,iface=wan0', mac: '02:00:00:00:01:02', mtu: 1500, addresses: [10.0.2.1/24], speed: 10G, npcc: { queues: [3], policy: npcc } }
neighbors:
  - { address: 10.0.2.3, port: wan0, mac: '02:00:00:00:02:01' }
dpdk: { hugepages: off, eal_args: [--no-pci, '--log-level=lib.eal:debug'], link_wait: 2s }
buffer: { pool: 16MB }
qos: { profile: roce-semi-lossless }
";

/// Sends 50 frames to dc0 and prints the number of those that leave by wan0 within 20 s of the last.
const FIFTY: &str = "
import socket, time
def raw(name):
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    one.bind((name, 0))
    return one
into, out = raw('dc0'), raw('wan0')
def frame(number):
    payload = bytes([number]) * 64
    udp = bytes.fromhex('c0001389') + (8 + len(payload)).to_bytes(2, 'big') + bytes(2) + payload
    head = bytes.fromhex('4500') + (20 + len(udp)).to_bytes(2, 'big') + bytes.fromhex('000000004011') + bytes(2) + bytes([10, 0, 1, 3, 10, 0, 2, 3])
    total = sum(int.from_bytes(head[at:at + 2], 'big') for at in range(0, 20, 2))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    head = head[:10] + (0xffff - total).to_bytes(2, 'big') + head[12:]
    return bytes.fromhex('020000000101' '020000000103' '0800') + head + udp
for number in range(50):
    into.send(frame(number))
    time.sleep(0.01)
seen, end = set(), time.monotonic() + 20
while len(seen) < 50 and time.monotonic() < end:
    out.settimeout(max(end - time.monotonic(), 0.001))
    try: got = out.recv(2048)
    except TimeoutError: break
    if got[:6] == bytes.fromhex('020000000201') and len(got) == 106: seen.add(got[105])
print(len(seen))
";

/// Prints the metrics.
const SCRAPE: &str = "
import urllib.request
print(urllib.request.urlopen('http://127.0.0.1:9464/metrics', timeout=30).read().decode())
";

/// Value that is changed, and the number of changes: more messages than are queued.
const KEY: &str = "npcc.wan0.3.few";
const CHANGES: u64 = 600;

/// Returns a pipe that takes no more, from both ends.
fn full_pipe() -> (BufReader<File>, PipeWriter) {
    let (read, mut write) = std::io::pipe().unwrap();
    write.write_all(&[b'\n'; 64 << 10]).unwrap();
    let read = File::from(OwnedFd::from(read));
    (BufReader::new(read), write)
}

/// Starts a switch whose output and errors go into one pipe, which is full.
fn start(lab: Lab, mut command: Command) -> (Switch, BufReader<File>) {
    let (read, write) = full_pipe();
    command.stdout(write.try_clone().unwrap()).stderr(write);
    let child = Running::of(command.spawn().unwrap());
    // What the helpers of `Switch` print on failure.
    std::fs::write(lab.path("log"), "nobody reads it").unwrap();
    (Switch { lab, child }, read)
}

/// Asserts that a port's link goes down and comes up, that frames pass then, and that requests are answered.
fn works(switch: &Switch, net: &Net) {
    let space = net.space("sw");
    switch.answers();
    switch.forwards();
    for (state, up) in [("down", false), ("up", true)] {
        run(&format!("ip -n {space} link set wan0 {state}"));
        let awaited = || format!("wan0 {state}: {}", switch.show("ports"));
        wait::value(wait::LONG, awaited, || {
            let ports = switch.show("ports");
            let wan0 = ports.as_array()?.iter().find(|port| port["name"] == "wan0");
            (wan0?["up"] == up).then_some(())
        });
    }
    let fifty = python(&space, FIFTY).output().unwrap();
    assert_success(&fifty);
    assert_eq!(String::from_utf8_lossy(&fifty.stdout).trim(), "50");
    set(switch, 0..CHANGES);
    assert!(switch.done(&["show", "log"]).contains("link down"));
    let scrape = python(&space, SCRAPE).output().unwrap();
    assert_success(&scrape);
    assert!(String::from_utf8_lossy(&scrape.stdout).contains("npcc_port_up"));
}

/// Asserts that SIGTERM ends a switch in order.
fn ends(mut switch: Switch) {
    switch.signal("TERM");
    let status = switch.ended(wait::LONG);
    assert!(status.success(), "{status}");
}

/// Changes a value to each of these in turn; each change is a message.
fn set(switch: &Switch, values: Range<u64>) {
    let socket = switch.path("switch.sock");
    for value in values {
        let request = Request::Set {
            key: KEY.to_owned(),
            value: (1 + value).to_string(),
        };
        let reply = client::ask(&socket, &request).unwrap();
        assert!(matches!(reply, Reply::Reloaded(_)), "{reply:?}");
    }
}

/// Returns the number of the change that a message is about.
fn change(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once(&format!(" set {KEY} "))?;
    let (value, _) = rest.split_once(' ')?;
    Some(value.parse::<u64>().unwrap() - 1)
}

/// Returns the number of messages that a message reports as lost.
fn lost(message: &str) -> Option<u64> {
    let count = message.strip_suffix(" messages lost: the log was not read")?;
    Some(count.parse().unwrap())
}

/// Reads messages until each change is among them or may be among those that are reported as lost, which is when the queue has room again;
/// asserts that some were lost, that a change that is made then comes, and that all are in order.
fn takes_up_the_log(switch: &Switch, mut messages: impl Iterator<Item = String>) {
    let (mut seen, mut missed) = (Vec::new(), 0);
    while seen.len() as u64 + missed < CHANGES {
        let message = messages.next().unwrap();
        missed += lost(&message).unwrap_or_default();
        seen.extend(change(&message));
    }
    assert!(missed > 0, "all of {CHANGES} kept");
    set(switch, CHANGES..CHANGES + 1);
    while seen.last() != Some(&CHANGES) {
        seen.extend(change(&messages.next().unwrap()));
    }
    assert!(seen.is_sorted(), "{seen:?}");
}

/// Prepares a switch between two TAPs in a namespace.
fn taps(net: &Net) -> Lab {
    let space = net.space("sw");
    run(&format!("ip -n {space} link set lo up"));
    let lab = Lab::inside(space);
    let socket = lab.path("switch.sock");
    lab.config(&format!(
        "{CONFIG}telemetry: {{ socket: {}, http: '127.0.0.1:9464' }}\n",
        socket.display()
    ));
    lab
}

/// Earlier defect: a link that flapped stayed dead for good, `set` was not answered, and SIGTERM did not end the switch.
#[test]
fn with_output_and_errors_in_a_pipe_that_nobody_reads_a_switch_starts_forwards_answers_and_ends() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let lab = taps(&net);
    let command = lab.command(&["run", "-c", "switch.yaml"]);
    let (switch, _unread) = start(lab, command);
    works(&switch, &net);
    let core: usize = cores(&switch, "npcc-log").parse().unwrap();
    assert_ne!(core, 1, "the worker's");
    ends(switch);
}

/// Returns the list of the cores that a thread of the switch may use.
fn cores(switch: &Switch, thread: &str) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", switch.child.id())).unwrap();
    let paths = tasks.map(|task| task.unwrap().path().join("status"));
    // A client's thread may have ended.
    let all: Vec<String> = paths.flat_map(std::fs::read_to_string).collect();
    let own = all
        .iter()
        .find(|text| text.starts_with(&format!("Name:\t{thread}\n")));
    let mut lines = own.unwrap().lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
    list.unwrap().to_owned()
}

/// Earlier defect: a start did not come up.
#[test]
fn with_a_journal_that_hangs_a_switch_starts_forwards_answers_and_ends() {
    let _alone = alone();
    let net = Net::of(&["sw"], &[]);
    let lab = taps(&net);
    std::fs::create_dir_all(lab.path("run/systemd/journal")).unwrap();
    let journal = UnixDatagram::bind(lab.path("run/systemd/journal/socket")).unwrap();
    let full = UnixDatagram::unbound().unwrap();
    full.set_nonblocking(true).unwrap();
    full.connect(lab.path("run/systemd/journal/socket"))
        .unwrap();
    while full.send(b"MESSAGE=full\n").is_ok() {}
    // Standard error leads to the journal, too, and its /run is the test's.
    let shell = "mount --bind run /run && JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec \"$0\" run -c switch.yaml";
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &net.space("sw")]);
    command.args(["unshare", "--mount", "sh", "-c", shell]);
    command.arg(env!("CARGO_BIN_EXE_npcc-switch"));
    command.current_dir(lab.dir.path()).stdin(Stdio::null());
    let (switch, mut stderr) = start(lab, command);
    works(&switch, &net);
    // One thread writes both streams.
    std::thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
    journal.set_read_timeout(Some(wait::LONG)).unwrap();
    let messages = std::iter::repeat_with(|| {
        let mut entry = [0; 65536];
        let length = journal.recv(&mut entry).unwrap();
        fields(&entry[..length])
            .remove("MESSAGE")
            .unwrap_or_default()
    });
    takes_up_the_log(&switch, messages.map(|text| text.trim_end().to_owned()));
    ends(switch);
}

#[test]
fn what_a_pipe_did_not_take_is_counted_and_said_when_its_reader_reads_again() {
    let _alone = alone();
    let watched = "[10.0.2.1/24], speed: 10G, npcc: { queues: [3], policy: npcc }";
    let lab = Lab::with(&NULL_PORTS.replace("[10.0.2.1/24]", watched));
    let command = lab.command(&["run", "-c", "switch.yaml"]);
    let (switch, read) = start(lab, command);
    switch.answers();
    set(&switch, 0..CHANGES);
    let (give, lines) = channel();
    let reading = std::thread::spawn(move || {
        let lines = read.lines().map(Result::unwrap);
        // The receiver reads until the end.
        lines.for_each(|line| _ = give.send(line));
    });
    let next = || lines.recv_timeout(wait::LONG).unwrap();
    takes_up_the_log(&switch, std::iter::repeat_with(next));
    ends(switch);
    reading.join().unwrap();
    let rest: Vec<String> = lines.iter().collect();
    let last = rest.last().unwrap();
    assert!(last.contains("every frame accounted for"), "{rest:?}");
}

/// Asserts that a switch which ends itself by a fault ends, though nobody reads what it says.
fn ends_by(fault: &str) -> ExitStatus {
    let lab = Lab::with(NULL_PORTS);
    std::fs::write(lab.path("now"), "").unwrap();
    let mut command = lab.command(&["run", "-c", "switch.yaml"]);
    command.env("NPCC_FAULT", fault);
    command.env("NPCC_FAULT_UNTIL", lab.path("now"));
    let (mut switch, _unread) = start(lab, command);
    switch.ended(wait::LONG)
}

#[test]
fn a_panic_an_abort_and_a_start_that_fails_end_a_process_whose_errors_nobody_reads() {
    let _alone = alone();
    assert_eq!(ends_by("control").code(), Some(1));
    assert_eq!(ends_by("abort").signal(), Some(6));
    assert_eq!(ends_by("launch").code(), Some(1));
}
