//! A packet socket the kernel refuses. Needs root; sends nothing.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use npcc_dpdk::Port;

/// Holds a fanout group of a given number, of another kind than the driver's, until its standard input ends.
const HOLDER: &str = "
import socket, struct, sys
taken = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
taken.bind(('lo', 0))
taken.setsockopt(263, 18, struct.pack('=HH', int(sys.argv[1]), 1))
print('held', flush=True)
sys.stdin.read()
";

/// Found with a chain of two switches in one namespace, once in some dozen runs: the driver's group number is the process id xor the
/// interface's index, and two processes can arrive at one number. The error says to start again, and that helps.
#[test]
fn sockets_group_of_another_process() {
    let eal = common::eal();
    let index = std::fs::read_to_string("/sys/class/net/lo/ifindex").unwrap();
    let group = (std::process::id() ^ index.trim().parse::<u32>().unwrap()) & 0xffff;
    let mut holder = Command::new("/usr/bin/python3")
        .args(["-c", HOLDER, &group.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert_eq!(said.trim(), "held", "needs root");

    let device = "net_af_packet7,iface=lo";
    let error = Port::open_by_device(&eal, device).unwrap_err().to_string();
    assert!(error.contains("start again"), "{error}");

    drop(holder.stdin.take());
    holder.wait().unwrap();
    drop(Port::open_by_device(&eal, device).unwrap());
}
