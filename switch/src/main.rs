//! `npcc-switch`: one binary, the appliance and its tools.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Route images, flow caches and ledgers in huge pages.
#[global_allocator]
static HEAP: npcc_heap::HugeHeap = npcc_heap::HugeHeap;

fn main() -> ExitCode {
    npcc_switch::cli::main()
}
