//! Reader of the headers of four frames at a time: what [`npcc_pipeline::stage::heads`] does frame by frame, by vectors.
//!
//! The face is safe: slices of frames in, records out. Chosen once at the start, by what the processor has.
//!
//! Law: the records are those of the scalar reader, for any bytes (`tests/same_records.rs`).

#[cfg(target_arch = "x86_64")]
mod avx2;

use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::stage::heads::VectorReader;

/// Returns the best reader that this processor can run; `None` if only the scalar one.
#[must_use]
pub fn detected<B: FrameBuf>() -> Option<Box<dyn VectorReader<B>>> {
    #[cfg(target_arch = "x86_64")]
    if let Some(reader) = avx2::Avx2::detected() {
        return Some(Box::new(reader));
    }
    None
}
