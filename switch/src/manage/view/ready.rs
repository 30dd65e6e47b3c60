//! Readiness of routes and of pairs, as workers and control core publish them.

use npcc_api::ready::Ready;
use npcc_roce::pair::Evidence;

use super::View;
use crate::manage::ends::calendar::Calendar;

impl View {
    /// Notes which of routes and pairs are ready; called now and then.
    pub fn note_readiness(&self) {
        let mut ready = self.ready.locked();
        let routes = ready.routes.is_some()
            || self
                .linux
                .as_ref()
                .is_none_or(|linux| linux.kernel.status().compared.is_some());
        let counts = |evidence: Evidence| self.npcc.paired(evidence).get();
        let paired = Evidence::ALL
            .into_iter()
            .filter(|one| *one != Evidence::None);
        let paired: u64 = paired.map(counts).sum();
        let flows = paired + counts(Evidence::None);
        ready.note(routes, (flows, paired), self.clock.now());
    }

    /// Returns since when routes and pairs are ready, if every worker forwards.
    #[must_use]
    pub fn forwarding(&self) -> Option<Ready> {
        let mut workers = self.workers.stats.iter();
        let forwards = workers.all(|worker| worker.loops.get() > 0);
        let calendar = Calendar::of(self.clock);
        let since = self.ready.shown();
        forwards.then(|| Ready {
            forwards,
            routes_ready: since.routes.map(|at| calendar.micros(at)),
            pairs_ready: since.pairs.map(|at| calendar.micros(at)),
        })
    }
}
