//! Fuzz target of the frame parser: any bytes get a result, and every offset it gives lies inside the frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npcc_pipeline::parse::parse;
use npcc_pipeline::wire::bth;

fuzz_target!(|frame: &[u8]| {
    if let Ok(parsed) = parse(frame) {
        assert!(usize::from(parsed.l3_off) + usize::from(parsed.ip_len) <= frame.len());
        assert!(usize::from(parsed.l4_off) <= frame.len());
        if let Some(roce) = parsed.roce {
            assert!(usize::from(roce.bth_off) + bth::HEADER_LEN + bth::ICRC_LEN <= frame.len());
        }
        let _ = npcc_pipeline::icrc::verify(frame, &parsed);
    }
});
