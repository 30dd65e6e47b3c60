//! Targets of a change: the route table or the kernel, the workers, the control core; and the shown state.
//!
//! Law: the state shown is that which the workers, or the control core, were given.

use npcc_cnp::control::command::ControlCommand;
use npcc_pipeline::units::Mac;

use super::view::View;
use crate::apply::running::{SwitchState, Target, Targets};
use crate::report::qos;
use crate::saved::facts::Named;
use crate::wiring::kernel::Kernel;
use crate::wiring::live_routes::LiveRoutes;
use crate::wiring::{self, routes};
use npcc_engine::control::commands::ControlCommands;
use npcc_engine::fault;
use npcc_engine::worker::command::WorkerCommands;

/// Targets of a running switch.
pub(super) struct LiveTargets<'a> {
    pub(super) view: &'a View,
    pub(super) workers: &'a WorkerCommands,
    pub(super) npcc: &'a ControlCommands,
    /// The kernel; `None` where Linux is not integrated.
    pub(super) kernel: Option<&'a Kernel>,
    pub(super) routes: &'a mut Routes,
}

/// Route table of the file, and prefixes beside it.
#[derive(Debug)]
pub struct Routes {
    /// The table; `None` where the routes are the kernel's.
    pub table: Option<LiveRoutes>,
    /// Prefixes routed beside those of the file.
    pub prefixes: Vec<npcc_config::ipnet::IpNet>,
}

impl Targets for LiveTargets<'_> {
    fn apply_to(
        &mut self,
        target: Target,
        from: SwitchState<'_>,
        to: SwitchState<'_>,
    ) -> Result<(), String> {
        match target {
            Target::Routes => self.routes(from, to),
            Target::Workers => self.workers(from, to),
            Target::Control => self.control(from, to),
        }
    }
}

impl LiveTargets<'_> {
    fn routes(
        &mut self,
        (before, _): SwitchState<'_>,
        (after, _): SwitchState<'_>,
    ) -> Result<(), String> {
        let Some(table) = &mut self.routes.table else {
            return self.linux_wants(before, after);
        };
        let ports = self.view.ports.iter();
        let macs: Vec<Mac> = ports.map(|port| port.mac).collect();
        let mut wanted = routes::table(after, &macs);
        routes::deal(after, &macs, &self.routes.prefixes, &mut wanted);
        let done = table.become_of(wanted);
        done.map(drop).map_err(|refused| refused.to_string())
    }

    fn workers(
        &self,
        (_, from): SwitchState<'_>,
        (config, to): SwitchState<'_>,
    ) -> Result<(), String> {
        let LiveTargets { view, workers, .. } = self;
        let commands = from.commands(to);
        workers
            .enqueue(&commands)
            .map_err(|unresponsive| unresponsive.to_string())?;
        *view.qos() = qos::effective(config, &to.paths());
        for (state, (port, pfc)) in view
            .links
            .lock()
            .iter_mut()
            .zip(to.ports.iter().zip(&to.pfc))
        {
            (state.speeds, state.pfc) = (port.speeds, pfc.clone());
            state.receives = port.admin_up;
        }
        Ok(())
    }

    fn control(
        &self,
        (before, from): SwitchState<'_>,
        (after, to): SwitchState<'_>,
    ) -> Result<(), String> {
        let LiveTargets { view, npcc, .. } = self;
        if from.cnp_header != to.cnp_header {
            let (header, priority) = to.cnp_header;
            npcc.set_cnp_header(header, priority)
                .map_err(|error| error.to_string())?;
        }
        if from.control != to.control {
            let settings = Box::new(to.control.clone());
            npcc.send_and_wait(ControlCommand::Configure(settings))
                .map_err(|error| error.to_string())?;
            view.hosts().clone_from(&to.control.hosts);
        }
        if before.npcc != after.npcc && fault::strikes_once("reload") {
            return Err("the control core does not listen".to_owned());
        }
        Ok(())
    }
}

impl LiveTargets<'_> {
    /// Writes addresses, neighbours and routes to the kernel; restores the previous ones if it refuses any.
    fn linux_wants(
        &self,
        before: &npcc_config::Config,
        after: &npcc_config::Config,
    ) -> Result<(), String> {
        let gone = || "the kernel is not followed any more: restart the switch".to_owned();
        let kernel = self.kernel.ok_or_else(gone)?.handle();
        let (before, after) = (wiring::hosts::wanted(before), wiring::hosts::wanted(after));
        if before == after {
            return Ok(());
        }
        let named = Named::of(&after);
        let refused = kernel.want(after).ok_or_else(gone)?;
        if refused.is_empty() {
            self.view.saved.change(|facts| facts.wanted = Some(named));
            return Ok(());
        }
        // The kernel accepted the previous ones before.
        let _ = kernel.want(before);
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        Err(refused.join("; "))
    }
}
