//! Resumption of pause storms that the previous process left.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use npcc_config::Config;
use npcc_pipeline::units::{PortId, Priority};

use crate::saved::storms::Storm;
use npcc_engine::clock::Clock;
use npcc_engine::log::note;
use npcc_engine::worker::frame::Datapath;

/// Resumes and logs storms whose ports still exist and are this worker's.
pub(super) fn resume(path: &mut Datapath, storms: &[Storm], (config, clock): (&Config, &Clock)) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    for storm in storms {
        let Storm {
            port,
            priority,
            since_ms,
        } = storm;
        let place = config.ports.iter().position(|one| one.name == *port);
        let id = place.and_then(|index| u8::try_from(index).ok());
        let found = Priority::all().find(|one| one.index() == usize::from(*priority));
        let (Some(id), Some(found)) = (id, found) else {
            continue;
        };
        let ago = now.saturating_sub(Duration::from_millis(*since_ms));
        if path.resume_storm(PortId(id), found, clock.before(ago)) {
            note(&format!(
                "note: the pause storm on port {port}, priority {priority}, from before the start goes on until its peer is quiet"
            ));
        }
    }
}
