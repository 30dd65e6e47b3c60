//! Fuzz target of the configuration: any text gives a configuration or a report that can be printed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match npcc_config::parse("fuzz.yaml", text) {
        Ok(loaded) => {
            let _ = npcc_config::Sizing::of(&loaded.config).to_string();
        }
        Err(report) => assert!(!report.to_string().is_empty()),
    }
});
