//! Construction from a checked configuration: EAL arguments, ports, routes, the pipeline's and NPCC's settings.

pub mod assembly;
pub mod backend;
mod device_pause;
pub mod eal;
pub mod hosts;
pub mod kernel;
pub mod kernel_fib;
pub mod kernel_ipv6;
pub mod live_routes;
pub mod npcc;
pub mod path;
pub mod pfc;
pub mod pools;
mod port_start;
pub mod ports;
pub mod punt;
pub mod routes;
mod self_test;
pub mod speeds;
pub mod workers;

#[cfg(test)]
pub(crate) mod live_tests;
