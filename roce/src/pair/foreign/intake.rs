//! Intake of reports into the table, and what they change of the verdicts on endpoints.

use npcc_pipeline::units::Nanos;

use super::{HOLDS, PeerId, RefusedEnd, ReportedEnd, peers};
use crate::key::FlowKey;
use crate::pair::endpoints::Endpoints;

impl Endpoints {
    /// Takes a peer's report of an end whose addresses were checked. Returns the number of ends that made room for it.
    pub(in crate::pair) fn take_end(
        &mut self,
        peer: PeerId,
        end: &ReportedEnd,
        now: Nanos,
    ) -> Result<u64, RefusedEnd> {
        let until = now + end.holds.min(HOLDS);
        if let Some(index) = self.foreign.ends.find(&end.key)
            && let Some(known) = self.foreign.ends.get_mut(index)
        {
            let same = (known.port, known.partner) == (end.udp_port, end.partner);
            if known.peer != peer && known.until > now && self.foreign.peers.is_believed(known.peer)
            {
                // Whoever reported it first is the one to take it back.
                return same.then_some(0).ok_or(RefusedEnd::Disputed);
            }
            if same && known.peer == peer {
                known.until = until;
                self.foreign
                    .peers
                    .touch(&mut self.foreign.ends, peer, index);
                return Ok(0);
            }
            self.drop_foreign(index, now);
        }
        let mut displaced = 0;
        while let Some(oldest) = self.foreign.peers.must_go(&self.foreign.ends, peer) {
            self.drop_foreign(oldest, now);
            displaced += 1;
        }
        self.foreign.insert(peer, end, until);
        self.update_shared_of(&end.key, end.udp_port, now);
        Ok(displaced)
    }

    /// Renews the verdicts on endpoints that a reported end with this key may belong to: from now on packets here name its queue pair too, or no
    /// longer.
    pub(in crate::pair) fn update_shared_with(&mut self, key: &FlowKey, now: Nanos) {
        let reported = self.foreign.ends.find(key);
        if let Some(port) = reported.and_then(|index| Some(self.foreign.ends.get(index)?.port)) {
            self.update_shared_of(key, port, now);
        }
    }

    /// Forgets an end with this UDP source port that its own peer says is gone. One that has another port by now stays: rows may come in any order.
    pub(in crate::pair) fn forget_end(
        &mut self,
        peer: PeerId,
        (key, port): (&FlowKey, u16),
        now: Nanos,
    ) {
        let Some(index) = self.foreign.ends.find(key) else {
            return;
        };
        let end = self.foreign.ends.get(index);
        if end.is_some_and(|end| (end.peer, end.port) == (peer, port)) {
            self.drop_foreign(index, now);
        }
    }

    fn drop_foreign(&mut self, index: u32, now: Nanos) {
        if let Some((key, port)) = self.foreign.remove(index) {
            self.update_shared_of(&key, port, now);
        }
    }

    /// Forgets ends that were not reported again in time, and those of distrusted peers. Bounded work.
    pub(in crate::pair) fn age_foreign(&mut self, now: Nanos) {
        if self.foreign.is_empty() {
            return;
        }
        for _ in 0..peers::FORGOTTEN_PER_TICK {
            let Some(index) = self.foreign.peers.overdue(&self.foreign.ends, now) else {
                return;
            };
            self.drop_foreign(index, now);
        }
    }

    /// Believes nothing of a peer from now on; or believes it again, as soon as all is forgotten that it said before.
    pub(in crate::pair) fn distrust(&mut self, peer: PeerId, distrusted: bool) {
        self.foreign.peers.distrust(peer, distrusted);
    }

    /// Returns why a peer's next report is refused, whatever it says.
    pub(in crate::pair) fn refuses(&mut self, peer: PeerId, now: Nanos) -> Option<RefusedEnd> {
        self.foreign.peers.refuses(peer, now)
    }
}
