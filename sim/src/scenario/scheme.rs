//! Congestion schemes of the switches, by name.
//!
//! | name | marks | CNPs of the switch |
//! |---|---|---|
//! | `pfc` | no | none: only the pool and, where enabled, PFC |
//! | `ecn` | yes | none: the far receiver answers marks |
//! | `ecn-nvidia`, `ecn-hpcc`, `ecn-tuned` | yes, by a curve of their own: [`Curve`] | none |
//! | a policy's name, such as `npcc` | sent as near CNPs where that is possible, with those of switches upstream | that policy's, and those for marks |
//! | `npcc+leave` | the same, but marks of switches upstream go on to the receiver | the same |
//! | `npcc+near` | the same at any distance (gate off) | the same |
//! | `npcc+mark`, `npcc+off` | always CE, never | that policy's alone |
//! | `themis` | cleared after use | one per marked packet that leaves, at most every 5 us a flow |

use std::fmt;
use std::str::FromStr;

use npcc_cnp::control::config::EcnMode;
use npcc_cnp::policy::{PolicyInputs, PolicyKind, PolicyName};
use serde::{Deserialize, Deserializer};

use super::Curve;

/// Congestion scheme of the switches of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scheme {
    /// NPCC's policy, if any.
    pub policy: Option<PolicyName>,
    /// ECN marking mode.
    pub ecn: EcnMode,
    /// True if marks of switches upstream are left as they are.
    pub leave: bool,
    /// True if flows whose receiver is near are treated as all others.
    pub near: bool,
    /// True for THEMIS-like CNPs, one per marked packet that leaves.
    pub themis: bool,
    /// ECN curve by which it marks.
    pub curve: Curve,
}

impl Scheme {
    /// No congestion signal at all.
    pub const PFC: Scheme = Scheme {
        policy: None,
        ecn: EcnMode::Off,
        leave: false,
        near: false,
        themis: false,
        curve: Curve::Scenario,
    };
    /// Ordinary DCQCN: ECN marking alone.
    pub const ECN: Scheme = Scheme {
        ecn: EcnMode::Mark,
        ..Scheme::PFC
    };
    /// NPCC with its table policy, diverting marks into CNPs.
    pub const NPCC: Scheme = Scheme {
        policy: Some(PolicyName::Npcc),
        ecn: EcnMode::Divert,
        ..Scheme::PFC
    };
    /// THEMIS-like scheme: ECN marking, with CNPs from the switch.
    pub const THEMIS: Scheme = Scheme {
        themis: true,
        ..Scheme::ECN
    };
    /// Schemes that need no switch that sends CNPs, and can be had today.
    pub const BASELINES: [Scheme; 5] = [
        Scheme::PFC,
        Scheme::ECN,
        Scheme::marking(Curve::Nvidia),
        Scheme::marking(Curve::Hpcc),
        Scheme::marking(Curve::Tuned),
    ];

    /// Returns ECN marking alone, by this curve.
    #[must_use]
    pub const fn marking(curve: Curve) -> Scheme {
        Scheme {
            curve,
            ..Scheme::ECN
        }
    }

    /// Returns the policy, if any, with its parameters for a pool of so many bytes.
    #[must_use]
    pub fn policy_kind(&self, pool: Option<u64>) -> Option<PolicyKind> {
        let settings = PolicyInputs {
            pool,
            ..PolicyInputs::default()
        };
        Some(self.policy?.new_policy(&settings))
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.policy {
            Some(policy) => policy.name(),
            None if self.themis => "themis",
            None if self.ecn == EcnMode::Off => "pfc",
            None => self.curve.name(),
        };
        let ecn = match (self.policy, self.ecn) {
            (Some(_), EcnMode::Off) => "+off",
            (Some(_), EcnMode::Mark) => "+mark",
            _ if self.leave => "+leave",
            _ if self.near => "+near",
            _ => "",
        };
        out.pad(&format!("{name}{ecn}"))
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Scheme, String> {
        match text {
            "pfc" => return Ok(Scheme::PFC),
            "themis" => return Ok(Scheme::THEMIS),
            _ => {}
        }
        if let Some(curve) = Curve::ALL.into_iter().find(|curve| curve.name() == text) {
            return Ok(Scheme::marking(curve));
        }
        let (name, suffix) = text.split_once('+').unwrap_or((text, ""));
        let ecn = match suffix {
            "" | "leave" | "near" => EcnMode::Divert,
            "mark" => EcnMode::Mark,
            "off" => EcnMode::Off,
            other => {
                return Err(format!(
                    "`+{other}` is not known; write +leave, +near, +mark or +off"
                ));
            }
        };
        let policy = PolicyName::named(name).ok_or_else(|| {
            let names = PolicyName::ALL.map(PolicyName::name);
            format!(
                "`{name}` is no scheme; write pfc, ecn, ecn-nvidia, ecn-hpcc, ecn-tuned, themis or {}",
                names.join(", ")
            )
        })?;
        Ok(Scheme {
            policy: Some(policy),
            ecn,
            leave: suffix == "leave",
            near: suffix == "near",
            themis: false,
            curve: Curve::Scenario,
        })
    }
}

impl<'de> Deserialize<'de> for Scheme {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Scheme, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            "pfc",
            "ecn",
            "ecn-nvidia",
            "ecn-hpcc",
            "ecn-tuned",
            "themis",
            "npcc",
            "npcc+off",
            "npcc+mark",
            "npcc+leave",
            "model+near",
            "model",
            "model+off",
        ] {
            assert_eq!(name.parse::<Scheme>().unwrap().to_string(), name);
        }
        for wrong in ["", "npc", "npcc+clear", "npcc/fast", "ecn+off", "ecn-"] {
            assert!(wrong.parse::<Scheme>().is_err(), "{wrong}");
        }
    }
}
