//! Location of packet sources, by the switch's own routes.

use std::net::IpAddr;

use npcc_pipeline::route::fib::FibReader;
use npcc_roce::source_check::Routes;

/// Routes as NPCC queries them: a reader of its own, refreshed in every turn of the control core.
#[derive(Debug)]
pub struct SourceRoutes(pub FibReader);

impl Routes for SourceRoutes {
    fn refresh(&mut self) -> u64 {
        let changes = self.0.changes();
        self.0.refresh();
        changes
    }

    fn ports_toward(&self, host: IpAddr) -> u32 {
        self.0.ports_toward(host)
    }
}
