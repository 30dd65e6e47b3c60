//! Findings and their text.

use std::fmt::Display;

use serde::Serialize;

npcc_pipeline::named! {
    /// Severity of a finding.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Severity {
        /// The feed does not do what it is for.
        Error = "error",
        /// It works, but worse or less safely than it could.
        Warning = "warning",
        /// Worth knowing, but possibly intended.
        Note = "note",
    }
}

npcc_pipeline::named! {
    /// Kind of a finding.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Kind {
        /// A server does not answer.
        Unreachable = "unreachable",
        /// A server refuses this box's credentials.
        Credentials = "credentials",
        /// The TLS handshake with a server fails.
        Tls = "tls",
        /// This box may publish for others.
        PermissionsTooWide = "permissions-too-wide",
        /// This box may not publish or read what it has to.
        PermissionsTooNarrow = "permissions-too-narrow",
        /// Messages do not go from one server to the other.
        NoRoute = "no-route",
        /// No server keeps a history.
        NoHistory = "no-history",
        /// Some servers keep a history and others do not.
        HistoryOnSome = "history-on-some",
        /// A server refuses the longest messages.
        MaxPayload = "max-payload",
        /// The clocks of two boxes differ.
        Clock = "clock",
        /// A peer is not on the bus.
        PeerSilent = "peer-silent",
        /// The switch does not answer.
        SwitchSilent = "switch-silent",
    }
}

impl Kind {
    const fn severity(self) -> Severity {
        match self {
            Kind::Unreachable
            | Kind::Credentials
            | Kind::Tls
            | Kind::PermissionsTooNarrow
            | Kind::NoRoute
            | Kind::SwitchSilent => Severity::Error,
            Kind::PermissionsTooWide
            | Kind::HistoryOnSome
            | Kind::MaxPayload
            | Kind::Clock
            | Kind::PeerSilent => Severity::Warning,
            Kind::NoHistory => Severity::Note,
        }
    }
}

/// Finding: what is wrong, where, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kind of problem; printed in brackets.
    pub kind: Kind,
    /// Severity, which follows from the kind.
    pub severity: Severity,
    /// Server, peer or socket.
    #[serde(rename = "where")]
    pub place: String,
    /// Description of the problem.
    pub what: String,
    /// Remedy.
    pub mend: String,
}

impl Finding {
    pub(super) fn new(
        kind: Kind,
        place: impl Display,
        what: impl Display,
        mend: impl Display,
    ) -> Self {
        Self {
            kind,
            severity: kind.severity(),
            place: place.to_string(),
            what: what.to_string(),
            mend: mend.to_string(),
        }
    }
}

/// Formats findings for people.
#[must_use]
pub fn text(found: &[Finding]) -> String {
    let one = |finding: &Finding| {
        let Finding {
            kind,
            severity,
            place,
            what,
            mend,
        } = finding;
        format!(
            "{}: {place}: {what} [{}]\n   mend: {mend}\n",
            severity.name(),
            kind.name()
        )
    };
    let mut text: String = found.iter().map(one).collect();
    if found.is_empty() {
        text.push_str("no problems found\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_text_name_a_kind_alike() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::json!(kind), kind.name());
        }
    }
}
