//! Stages of a packet, read from its events: of the same frame as it came in, as it was let in, and as it left.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use npcc_api::capture::CaptureStart;
use npcc_pipeline::capture::{Event, Fields, Kind};
use npcc_pipeline::parse::parse;
use npcc_pipeline::route::buckets::{BUCKETS, first_choice};
use npcc_pipeline::units::Mac;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::capture::words;

/// ECN's four values (RFC 3168 section 5).
const ECN: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];

/// An event and the frame's headers at that time.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) event: Event,
    frame: Vec<u8>,
    fields: Fields,
}

impl Seen {
    pub(super) fn new(event: Event, frame: &[u8]) -> Seen {
        Seen {
            event,
            frame: frame.to_vec(),
            fields: Fields::of(frame),
        }
    }

    /// The order of events of one packet.
    pub(super) const fn rank(&self) -> u8 {
        match self.event.kind {
            Kind::Received | Kind::Made => 0,
            Kind::HandedOver => 1,
            Kind::Queued | Kind::Bypassed => 2,
            Kind::Sent | Kind::Dropped | Kind::Punted | Kind::Consumed => 3,
        }
    }

    /// Destination of an IP packet.
    pub(super) fn destination(&self) -> Option<IpAddr> {
        let dst = Ipv6Addr::from_bits(self.fields.dst);
        match self.fields.version {
            4 => dst.to_ipv4_mapped().map(IpAddr::V4),
            6 => Some(dst.into()),
            _ => None,
        }
    }

    fn source(&self) -> IpAddr {
        let src = Ipv6Addr::from_bits(self.fields.src);
        src.to_ipv4_mapped()
            .map_or(IpAddr::V6(src), |v4: Ipv4Addr| IpAddr::V4(v4))
    }
}

/// The route of a packet.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) prefix: String,
    pub(super) next_hops: usize,
}

/// Result of one stage.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    /// Its name.
    pub(super) stage: &'static str,
    /// Time since the packet came in or was made, in ns of the workers' clock, where that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after_ns: Option<u64>,
    /// Facts the stage reported.
    #[serde(flatten)]
    pub(super) facts: Map<String, Value>,
}

impl Step {
    fn new(stage: &'static str, after_ns: Option<u64>, facts: Value) -> Step {
        let Value::Object(mut facts) = facts else {
            return Step {
                stage,
                after_ns,
                facts: Map::new(),
            };
        };
        facts.retain(|_, fact| !fact.is_null());
        Step {
            stage,
            after_ns,
            facts,
        }
    }
}

/// All steps of a packet.
pub(super) fn steps(start: &CaptureStart, seen: &[Seen], route: Option<&Route>) -> Vec<Step> {
    let Some(first) = seen.first() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for one in seen {
        let after = Some(one.event.time.since(first.event.time).0);
        match one.event.kind {
            Kind::Received => received(start, one, route, &mut all),
            Kind::Made => all.push(Step::new("made", after, made(start, one))),
            Kind::HandedOver => all.push(Step::new(
                "handed over",
                after,
                json!({ "by_worker": one.event.worker.0, "egress": egress(start, &one.event) }),
            )),
            Kind::Queued | Kind::Bypassed => let_in(start, (first, one), after, &mut all),
            Kind::Sent => all.push(Step::new("sent", after, sent(start, (first, one)))),
            Kind::Dropped => all.push(Step::new("dropped", after, dropped(start, &one.event))),
            Kind::Punted | Kind::Consumed => {
                let facts = json!({ "worker": one.event.worker.0 });
                all.push(Step::new(one.event.kind.name(), after, facts));
            }
        }
    }
    all
}

fn egress<'a>(start: &'a CaptureStart, event: &Event) -> Option<&'a str> {
    event.egress.map(|port| words::port(start, port))
}

/// Steps of the ingress: the frame, its headers, and where the table leads it.
fn received(start: &CaptureStart, one: &Seen, route: Option<&Route>, all: &mut Vec<Step>) {
    let (event, fields) = (&one.event, &one.fields);
    let port = event.ingress.map(|port| words::port(start, port));
    let at = words::since_1970(start, event.time);
    all.push(Step::new(
        "received",
        Some(0),
        json!({ "port": port, "worker": event.worker.0, "bytes": event.len, "at_ns": at,
            "src_mac": Mac(fields.src_mac).to_string(), "dst_mac": Mac(fields.dst_mac).to_string() }),
    ));
    let roce = fields.roce.as_ref();
    all.push(Step::new(
        "parsed",
        None,
        json!({
            // What was cut off for this trace is no mistake of the packet's.
            "error": parse(&one.frame).err().filter(|_| one.frame.len() == usize::from(event.len)).map(|reason| reason.name()),
            "vlan": fields.vlan(),
            "ip": (fields.version != 0).then_some(fields.version),
            "src": (fields.version != 0).then(|| one.source().to_string()),
            "dst": one.destination().map(|to| to.to_string()),
            "dscp": (fields.version != 0).then_some(fields.tos >> 2),
            "ecn": (fields.version != 0).then(|| ecn(fields)),
            "ttl": (fields.version != 0).then_some(fields.ttl),
            "protocol": (fields.version != 0).then_some(fields.protocol),
            "src_port": fields.ports.map(|(src, _)| src),
            "dst_port": fields.ports.map(|(_, dst)| dst),
            "opcode": roce.map(|roce| roce.opcode),
            "dest_qp": roce.map(|roce| roce.dest_qp),
            "psn": roce.map(|roce| roce.psn),
            "pfc_classes": fields.pfc,
        }),
    ));
    if let Some(priority) = event.priority {
        let facts = json!({ "priority": priority.get() });
        all.push(Step::new("classified", None, facts));
    }
    if event.priority.is_some() && one.destination().is_some() {
        let notes = &event.notes;
        // With one member no flow chooses.
        let chooses = route.is_some_and(|route| route.next_hops > 1);
        all.push(Step::new(
            "routed",
            None,
            json!({
                "prefix": route.map_or("none", |route| &route.prefix),
                "next_hop_group": notes.next_hops,
                "flow_hash": format!("{:#010x}", notes.flow_hash),
                "bucket": chooses.then(|| format!("{} of {BUCKETS}", first_choice(notes.flow_hash))),
            }),
        ));
    }
}

fn ecn(fields: &Fields) -> &'static str {
    ECN.get(usize::from(fields.tos & 3)).copied().unwrap_or("")
}

/// A frame that the switch or Linux made.
fn made(start: &CaptureStart, one: &Seen) -> Value {
    let roce = one.fields.roce.as_ref();
    json!({
        "worker": one.event.worker.0, "bytes": one.event.len,
        "egress": egress(start, &one.event), "queue": one.event.priority.map(|queue| queue.get()),
        "depth": one.event.depth,
        "src": (one.fields.version != 0).then(|| one.source().to_string()),
        "dst": one.destination().map(|to| to.to_string()),
        "vlan": one.fields.vlan(),
        "opcode": roce.map(|roce| roce.opcode), "dest_qp": roce.map(|roce| roce.dest_qp),
    })
}

/// Steps of the egress: rewritten fields, room in the buffer, and where it waits.
fn let_in(
    start: &CaptureStart,
    (first, one): (&Seen, &Seen),
    after: Option<u64>,
    all: &mut Vec<Step>,
) {
    let (event, fields, notes) = (&one.event, &one.fields, &one.event.notes);
    all.push(Step::new(
        "rewritten",
        None,
        json!({
            "src_mac": Mac(fields.src_mac).to_string(), "dst_mac": Mac(fields.dst_mac).to_string(),
            "vlan": fields.vlan().map_or_else(|| json!("untagged"), |vlan| json!(vlan)),
            "ttl": fields.ttl,
            "bytes": (event.len != first.event.len).then_some(event.len),
        }),
    ));
    all.push(Step::new(
        "admitted",
        after,
        json!({ "worker": event.worker.0, "group": event.ingress.map(|port| words::port(start, port)),
            "group_bytes": notes.group, "headroom_bytes": notes.headroom, "pool_bytes": notes.pool }),
    ));
    let how = if event.kind == Kind::Bypassed {
        "past the idle queue"
    } else {
        "in the queue"
    };
    all.push(Step::new(
        "queued",
        after,
        json!({ "egress": egress(start, event), "queue": event.priority.map(|queue| queue.get()),
            "depth": event.depth, "waits": how }),
    ));
    if fields.roce.is_some() {
        let facts = json!({ "watched": event.has(Event::WATCHED) });
        all.push(Step::new("npcc", None, facts));
    }
}

/// How a frame left.
fn sent(start: &CaptureStart, (first, one): (&Seen, &Seen)) -> Value {
    let marked = one.fields.tos & 3 == 3 && first.fields.tos & 3 != 3;
    json!({
        "egress": egress(start, &one.event), "queue": one.event.priority.map(|queue| queue.get()),
        "worker": one.event.worker.0, "bytes": one.event.len, "depth": one.event.depth,
        "ecn": (one.fields.version != 0).then(|| ecn(&one.fields)),
        "marked": (one.fields.version != 0).then_some(marked),
    })
}

/// Why a frame did not leave.
fn dropped(start: &CaptureStart, event: &Event) -> Value {
    json!({
        "reason": event.reason.map(|reason| reason.name()), "worker": event.worker.0,
        "ingress": event.ingress.map(|port| words::port(start, port)),
        "egress": egress(start, event),
        "queue": event.priority.map(|queue| queue.get()),
        "depth": event.egress.map(|_| event.depth),
    })
}
