//! Cells that differ from the others in the place of the congestion and in the traffic it meets: every flow group there is a class, which is
//! judged by itself.
//!
//! ```text
//!   near-leaf   senders - leaf =uplink= edge ----- dci ----- far - receivers     frames reach the edge with CE already
//!                                        `- local receivers
//!   dci         senders - edge ==== dci ==== far - receivers                     each sender has a local flow as well
//!                          `- local receivers
//!   far-host    senders - edge ----- dci ----- far = one receiver                half of the senders are on the far side
//! ```
//! `=` is the overloaded link. NPCC watches the link between the sites at `near-leaf`, as the leaf is a switch without NPCC, and the
//! overloaded queue elsewhere; at `far-host` both. `deaf-host` has one host at line rate that ignores every signal beside three that do not,
//! `mice` short flows of 64 KB beside the elephants.

use super::fleet::{self, Fleet};
use super::{Cell, Times, vary};

/// Rate of the overloaded link, in Gb/s; the other links have four times that.
const RATE: u32 = 100;

/// Sender sets; every host of a cell has the same one.
const CARDS: [&str; 5] = ["hpcc-vendor", "hpcc-reset", "paper", "mlx", "mlx-reset"];

pub(super) fn cells(length: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    for fleet in CARDS.map(fleet::all) {
        for overload in [(125, 5), (400, 4)] {
            for (place, body) in [
                ("near-leaf", near_leaf as Body),
                ("dci", dci),
                ("far-host", far_host),
                ("mice", mice),
            ] {
                cells.push(cell(place, fleet, overload, length, body));
            }
        }
        cells.push(cell("deaf-host", fleet, (400, 4), length, deaf_host));
    }
    cells
}

/// Hosts of a place and their offered load.
#[derive(Debug, Clone, Copy)]
struct Load<'a> {
    sender: &'a str,
    hosts: u32,
    /// Offered rate of each host, in Mb/s.
    line: u32,
    length: &'a str,
}

/// Writer of a place's switches, hosts, links and flows as scenario text.
type Body = fn(Load) -> String;

fn cell(
    place: &str,
    fleet: Fleet,
    (hundredths, hosts): (u32, u32),
    length: &str,
    body: Body,
) -> Cell {
    let name = format!(
        "{place} {} {RATE}G x{}.{:02} {length}",
        fleet.name,
        hundredths / 100,
        hundredths % 100
    );
    let load = Load {
        sender: fleet.senders[0],
        hosts,
        line: RATE * hundredths * 10 / hosts,
        length,
    };
    // The classes settle over tens of milliseconds.
    let times = Times::of(RATE, hundredths, length, true);
    let text = times.head(&name) + &body(load) + &vary(true);
    Cell { name, text }
}

fn near_leaf(load: Load) -> String {
    let Load {
        sender,
        hosts,
        line,
        length,
    } = load;
    let (inter, local) = (hosts.div_ceil(2), hosts / 2);
    format!(
        "switches: [leaf, edge, far]
hosts:
  - {{ name: inter, count: {inter}, switch: leaf, rate: {line}M, sender: {sender} }}
  - {{ name: local, count: {local}, switch: leaf, rate: {line}M, sender: {sender} }}
  - {{ name: to-inter, count: {inter}, switch: far, rate: {RATE}G }}
  - {{ name: to-local, count: {local}, switch: edge, rate: {RATE}G }}
links:
  - {{ name: uplink, from: leaf, to: edge, rate: {RATE}G, length: 100m }}
  - {{ name: dci, from: edge, to: far, rate: {wide}G, length: {length} }}
watch: uplink
npcc: [dci]
flows:
  - {{ name: inter, from: inter, to: to-inter }}
  - {{ name: local, from: local, to: to-local }}
",
        wide = 4 * RATE
    )
}

fn dci(load: Load) -> String {
    let Load {
        sender,
        hosts,
        line,
        length,
    } = load;
    // A host's two flows have half of its link each, so that its load on the link between the sites is its part of the overload.
    let both = 2 * line;
    format!(
        "switches: [edge, far]
hosts:
  - {{ name: senders, count: {hosts}, switch: edge, rate: {both}M, sender: {sender} }}
  - {{ name: neighbours, count: {hosts}, switch: edge, rate: {wide}G }}
  - {{ name: receivers, count: {hosts}, switch: far, rate: {wide}G }}
links: [{{ name: dci, from: edge, to: far, rate: {RATE}G, length: {length} }}]
watch: dci
flows:
  - {{ name: inter, from: senders, to: receivers }}
  - {{ name: local, from: senders, to: neighbours }}
",
        wide = 4 * RATE
    )
}

fn far_host(load: Load) -> String {
    let Load {
        sender,
        hosts,
        line,
        length,
    } = load;
    let (inter, local) = (hosts.div_ceil(2), hosts / 2);
    format!(
        "switches: [edge, far]
hosts:
  - {{ name: inter, count: {inter}, switch: edge, rate: {line}M, sender: {sender} }}
  - {{ name: local, count: {local}, switch: far, rate: {line}M, sender: {sender} }}
  - {{ name: receiver, count: 1, switch: far, rate: {RATE}G }}
links: [{{ name: dci, from: edge, to: far, rate: {wide}G, length: {length} }}]
watch: receiver
npcc: [receiver, dci]
flows:
  - {{ name: inter, from: inter, to: receiver }}
  - {{ name: local, from: local, to: receiver }}
",
        wide = 4 * RATE
    )
}

fn mice(load: Load) -> String {
    let Load {
        sender,
        hosts,
        line,
        length,
    } = load;
    format!(
        "switches: [edge, far]
hosts:
  - {{ name: elephants, count: {hosts}, switch: edge, rate: {line}M, sender: {sender} }}
  - {{ name: mice, count: 4, switch: edge, rate: {RATE}G, sender: {sender} }}
  - {{ name: to-elephants, count: {hosts}, switch: far, rate: {RATE}G }}
  - {{ name: to-mice, count: 4, switch: far, rate: {RATE}G }}
links: [{{ name: dci, from: edge, to: far, rate: {RATE}G, length: {length} }}]
watch: dci
flows:
  - {{ name: elephants, from: elephants, to: to-elephants }}
  - {{ name: mice, from: mice, to: to-mice, qps: 2, burst: 64KB, every: 800us, spread: 800us }}
"
    )
}

/// Writes the place `deaf-host`. The uncontrolled host is no class: what the others regain from its share is no harm.
fn deaf_host(load: Load) -> String {
    let Load {
        sender,
        hosts,
        line,
        length,
    } = load;
    let listening = hosts - 1;
    format!(
        "switches: [edge, far]
hosts:
  - {{ name: listening, count: {listening}, switch: edge, rate: {line}M, sender: {sender} }}
  - {{ name: deaf, count: 1, switch: edge, rate: {line}M, sender: uncontrolled }}
  - {{ name: to-listening, count: {listening}, switch: far, rate: {RATE}G }}
  - {{ name: to-deaf, count: 1, switch: far, rate: {RATE}G }}
links: [{{ name: dci, from: edge, to: far, rate: {RATE}G, length: {length} }}]
watch: dci
flows:
  - {{ name: listening, from: listening, to: to-listening }}
  - {{ from: deaf, to: to-deaf }}
"
    )
}
