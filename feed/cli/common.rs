//! Exit codes, output and signals of both programs.

use std::io::Write;
use std::process::ExitCode;

use npcc_config::Report;
use npcc_config::document::Document;
use tokio::signal::unix::{SignalKind, signal};

/// Failure of a command, which determines its exit code.
pub(crate) enum Failure {
    /// Code 2: the message is printed as it is.
    Settings(String),
    /// Code 1.
    Runtime(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Runtime(error.into())
    }
}

/// Prints why a command failed; returns its exit code.
pub(crate) fn failed(failure: Failure) -> ExitCode {
    let (message, code) = match failure {
        Failure::Settings(report) => (report, 2),
        Failure::Runtime(error) => (format!("error: {error:#}"), 1),
    };
    say_error(message.trim_end());
    ExitCode::from(code)
}

/// Says how many records of the bus were dropped, if any.
#[allow(dead_code, reason = "npcc-agent reads no records")]
pub(crate) fn say_dropped(dropped: usize) {
    if dropped > 0 {
        say_error(&format!(
            "{dropped} records dropped: not readable, or of another site or box than that under whose subject they came"
        ));
    }
}

/// Returns settings that were read; warnings go to stderr.
pub(crate) fn accept<T>(read: Result<Document<T>, Report>) -> Result<T, Failure> {
    let read = read.map_err(|report| Failure::Settings(report.to_string()))?;
    for warning in &read.warnings {
        say_error(&warning.to_string());
    }
    Ok(read.model)
}

/// Has a panic of any task end the process, after its message: the service manager starts it again, and nobody would notice that a task is missing.
pub(crate) fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}

/// Ends at SIGINT or SIGTERM.
pub(crate) fn stopped() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

pub(crate) fn say_error(message: &str) {
    // Nothing is left to do when stderr is gone.
    let _ = writeln!(std::io::stderr(), "{message}");
}

pub(crate) fn say(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    /// Variable that has the test be the process that panics.
    const PANICS: &str = "NPCC_TEST_PANICS";

    #[test]
    fn a_task_that_panics_ends_the_process() {
        if std::env::var_os(PANICS).is_some() {
            abort_on_panic();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                drop(tokio::spawn(async { panic!("a defect") }));
                tokio::time::sleep(Duration::from_secs(1)).await;
            });
            return;
        }
        let out = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "common::tests::a_task_that_panics_ends_the_process",
            ])
            .arg("--nocapture")
            .env(PANICS, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("a defect"), "{said}");
        assert_eq!(out.status.signal(), Some(nix::libc::SIGABRT), "{said}");
    }
}
