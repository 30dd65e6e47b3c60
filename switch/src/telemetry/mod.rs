//! HTTP service: `/metrics` for Prometheus, `/` for people, and the rows of `show` as JSON beneath `/api/`.
//!
//! Everything here reads what workers and control core publish anyway, and only on request. Law: whatever a client does, the switch
//! forwards as before; a client can at most make other clients wait.

mod cache;
mod hosts;
pub mod http;
pub mod metrics;
pub mod pages;
