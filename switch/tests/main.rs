//! Tests of the appliance's parts with what is around them: the kernel, FRR, and a world in memory.

#[path = "common/rack.rs"]
mod rack;
mod world;

mod frr_routes;
mod kernel_fib;
mod one_loop;
mod pause_buffer;
mod world_actions;
mod world_determinism;
mod world_floods;
mod world_forged;
mod world_handoff;
mod world_pauses;
mod world_restart;
mod world_speeds;
mod world_storms;
mod world_swarm;
