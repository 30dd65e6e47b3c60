//! Evidence `port`: exactly one queue pair in each direction on this UDP source port, unchanged for 50 ms and 64 packets.
//!
//! Equal ports alone mislead where a network card takes the port from its *own* queue pair: then equal ports belong to different connections whose
//! queue pairs happen to have equal numbers. So with several queue pairs between two addresses the evidence is refused while any number occurs in
//! both directions, and while half of the ports or more are seen in one direction only. Both directions must have been seen since, and an answer
//! must have had the number of a request in flight, to the packet, and none another. Never for UC, whose reverse packets are not acknowledgements;
//! never where the hash is believed and says otherwise.

use npcc_pipeline::units::Nanos;

use super::endpoints::Endpoints;
use super::endpoints::psn_state::PortFit;
use super::pair_state::Verdict;

/// Time for which nothing may have changed on the port.
pub(crate) const STEADY: Nanos = Nanos::from_millis(50);
/// Number of the flow's packets that must have passed meanwhile.
pub(crate) const STEADY_PACKETS: u64 = 64;

pub(super) fn partner(endpoints: &Endpoints, endpoint: u32, now: Nanos) -> Option<u32> {
    let state = endpoints.endpoint(endpoint)?;
    let pair = endpoints.pair(state.pair)?;
    let refuted = pair.own.is_usual() && state.verdict == Verdict::Disagree;
    if state.transport.is_uc() || refuted || !pair.ports_match() {
        return None;
    }
    let own = endpoints.group(state.group)?;
    let opposite = endpoints.opposite(endpoint)?;
    let changed = own.changed.max(opposite.changed);
    let steady =
        now.since(changed) >= STEADY && state.packets - state.packets_at_change >= STEADY_PACKETS;
    // A partner that went quiet when the other began is another connection's, by chance: their numbers were never compared.
    let partner = endpoints.endpoint(opposite.endpoints.head)?;
    let both = partner.last_seen > changed;
    let fit = [state, partner]
        .iter()
        .all(|endpoint| endpoint.psn.port == PortFit::Fits);
    (endpoints.is_alone(endpoint) && steady && both && fit).then_some(opposite.endpoints.head)
}
