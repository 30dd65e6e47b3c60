//! Response of a flow's rate to CNPs to its sender, as far as one measurement tells: an observation for the operator, not a verdict on the host
//! ([`crate::responsiveness`]).

use npcc_pipeline::named;

named! {
    /// Response of a flow to being signalled.
    #[derive(Default)]
    pub enum Response {
        /// The response is not measured yet.
        #[default]
        Unknown = "unknown",
        /// The rate is at most 62.5 % of before (a first CNP halves; half a cut's error is allowed).
        Halved = "halved",
        /// The rate is at most 90 % of before.
        Weak = "weak",
        /// The rate is more than 90 % of before.
        None = "none",
    }
}

impl Response {
    /// Response of a flow that sent at the rate `before` and sends at `after` once its CNPs have had effect.
    pub(crate) fn of(before: u64, after: u64) -> Response {
        let (before, after) = (u128::from(before), u128::from(after));
        if after * 8 <= before * 5 {
            Response::Halved
        } else if after * 10 <= before * 9 {
            Response::Weak
        } else {
            Response::None
        }
    }
}
