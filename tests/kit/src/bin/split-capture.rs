//! Splits a capture by direction for two `net_pcap` ports: `split-capture CAPTURE MAC REPEAT FROM.pcap OTHERS.pcap`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use npcc_testkit::capture;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, mac, repeat, from, others] = args.as_slice() else {
        eprintln!("usage: split-capture CAPTURE MAC REPEAT FROM.pcap OTHERS.pcap");
        return ExitCode::from(2);
    };
    let result = (|| -> anyhow::Result<(usize, usize)> {
        let repeat = repeat.parse()?;
        capture::split(
            Path::new(input),
            capture::mac(mac)?,
            repeat,
            Path::new(from),
            Path::new(others),
        )
    })();
    match result {
        Ok((first, second)) => {
            eprintln!("{from}: {first} frames, {others}: {second} frames");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(1)
        }
    }
}
