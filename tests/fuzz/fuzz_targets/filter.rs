//! Fuzz target of `capture`'s filters: any text is parsed or refused at one of its characters, and any frame is matched by what was parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npcc_pipeline::capture::{Fields, Filter, Seen};
use npcc_pipeline::drop::DropReason;

fuzz_target!(|input: (&str, &[u8])| {
    let (text, frame) = input;
    match Filter::parse(text) {
        Ok(filter) => {
            let fields = Fields::of(frame);
            let sightings = filter.sightings();
            let matches = |seen| filter.matches(&fields, seen, None);
            assert!(sightings.received || !matches(Seen::Received));
            assert!(sightings.sent || !matches(Seen::Sent));
            assert!(sightings.dropped || !matches(Seen::Dropped(DropReason::NoRoute)));
        }
        Err(error) => assert!((1..=text.chars().count() + 1).contains(&error.column)),
    }
});
