//! Tests of what depends on the real link speeds, and of configurations without speeds.

use npcc_pipeline::units::{BitRate, Mac};

use super::backend::{Backend, BackendChoice};
use super::path;
use super::pfc::{PfcState, marks_in_time};

const GIG: u64 = 1_000_000_000;

pub(crate) fn config(text: &str) -> npcc_config::Config {
    let ports = "ports:\n  - { name: a, device: '0000:3b:00.0' }\n  - { name: b, device: '0000:3b:00.1' }\n";
    let loaded = npcc_config::parse("t.yaml", &format!("version: 1\n{ports}{text}")).unwrap();
    loaded.config
}

pub(crate) fn paused() -> PfcState {
    let software = BackendChoice::of(Backend::Software, "");
    PfcState {
        tells_fill: true,
        ..PfcState::of(software, (1 << 3, 1 << 3))
    }
}

/// Earlier defect: physical ports, whose speed is not written, were left out of this check.
#[test]
fn a_queue_that_is_marked_after_its_senders_are_paused_is_refused_at_the_speed_the_link_has() {
    let config = config("buffer: { pool: 32MB }\n");
    let judged = |gig: u64| {
        let links = [BitRate(gig * GIG); 2];
        let shapers = [Some(BitRate(gig * GIG)); 2];
        marks_in_time(&config, &links, &shapers, &[paused(), paused()])
    };
    assert_eq!(judged(25), Ok(()));
    let why = judged(400).unwrap_err();
    assert!(
        why.contains("priority 3") && why.contains("raise buffer.pool"),
        "{why}"
    );
}

/// Earlier defect: a host that sent DSCP 48 at line rate starved priority 3.
#[test]
fn a_strict_queue_gets_a_tenth_of_its_port_unless_more_is_written() {
    let queue = |text: &str, rate: Option<BitRate>| {
        let config = config(text);
        let port = config.ports.first().unwrap();
        path::port(&config, port, Mac([2, 0, 0, 0, 0, 1]), rate)
            .egress
            .queues[6]
            .max_rate
    };
    let link = Some(BitRate(100 * GIG));
    assert_eq!(queue("", link), Some(BitRate(10 * GIG)));
    let written = "qos: { priorities: { 6: { max_rate: 25G } } }\n";
    assert_eq!(queue(written, link), Some(BitRate(25 * GIG)));
    assert_eq!(
        queue("", None),
        None,
        "of an unknown rate there is no tenth"
    );
}
