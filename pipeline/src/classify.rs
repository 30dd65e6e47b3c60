//! Classification of frames into priorities: by the VLAN tag's PCP, by the DSCP, or by both.

use crate::parse::{Kind, Parsed};
use crate::units::{PRIORITIES, Priority};
use crate::wire::ethernet;

crate::named! {
    /// Field of a packet that determines its priority.
    #[derive(Default)]
    #[cfg_attr(
        feature = "config",
        derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
    )]
    #[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
    pub enum Trust {
        /// No field: every packet gets the default priority.
        Port = "port",
        /// The VLAN tag's priority (PCP); the default priority without a tag.
        Pcp = "pcp",
        /// The IP header's DSCP.
        #[default]
        Dscp = "dscp",
        /// The DSCP, or the PCP where there is no DSCP. Every forwarded packet has a DSCP, so this equals `dscp`.
        Both = "both",
    }
}

/// Priority maps of one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classifier {
    /// Field that is trusted.
    pub trust: Trust,
    /// Priority of frames that do not carry a trusted field.
    pub default: Priority,
    /// Map from DSCP to priority.
    pub dscp: [Priority; 64],
    /// Map from PCP to priority.
    pub pcp: [Priority; PRIORITIES],
}

impl Classifier {
    /// Returns maps that put every frame in one priority.
    #[must_use]
    pub const fn all(priority: Priority) -> Classifier {
        Classifier {
            trust: Trust::Port,
            default: priority,
            dscp: [priority; 64],
            pcp: [priority; PRIORITIES],
        }
    }

    /// Returns the priority of a frame.
    #[inline]
    #[must_use]
    pub fn priority(&self, parsed: &Parsed) -> Priority {
        match self.trust {
            Trust::Port => self.default,
            Trust::Pcp => self.by_pcp(parsed),
            Trust::Dscp => self.by_dscp(parsed).unwrap_or(self.default),
            Trust::Both => self.by_dscp(parsed).unwrap_or_else(|| self.by_pcp(parsed)),
        }
    }

    /// Returns [`Classifier::priority`] of IP packets as a table: by the PCP of their tag (8 if they have none), then by DSCP.
    #[must_use]
    pub fn table(&self) -> [[Priority; 64]; PRIORITIES + 1] {
        std::array::from_fn(|tag| {
            let by_pcp = self.pcp.get(tag).copied().unwrap_or(self.default);
            match self.trust {
                Trust::Port => [self.default; 64],
                Trust::Pcp => [by_pcp; 64],
                Trust::Dscp | Trust::Both => self.dscp,
            }
        })
    }

    #[inline]
    fn by_dscp(&self, parsed: &Parsed) -> Option<Priority> {
        match parsed.kind {
            Kind::Routed(_) => self.dscp.get(usize::from(parsed.dscp())).copied(),
            Kind::MacControl => None,
        }
    }

    #[inline]
    fn by_pcp(&self, parsed: &Parsed) -> Priority {
        parsed
            .tci
            .and_then(|tci| self.pcp.get(usize::from(ethernet::pcp(tci))).copied())
            .unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::L3;

    fn parsed(tci: Option<u16>, dscp: u8) -> Parsed {
        Parsed {
            kind: Kind::Routed(L3::V4),
            l3_off: 14,
            tci,
            tags: u8::from(tci.is_some()),
            tos: dscp << 2,
            ip_len: 60,
            protocol: 17,
            l4_off: 34,
            addresses_v4: 0,
            roce: None,
        }
    }

    fn maps(trust: Trust) -> Classifier {
        let mut maps = Classifier::all(Priority::new(1));
        maps.trust = trust;
        maps.dscp[26] = Priority::new(3);
        maps.pcp[5] = Priority::new(5);
        maps
    }

    #[test]
    fn each_trust_reads_its_own_field() {
        let tagged = parsed(Some(5 << 13 | 100), 26);
        let plain = parsed(None, 26);
        for (trust, of_tagged, of_plain) in [
            (Trust::Port, 1, 1),
            (Trust::Pcp, 5, 1),
            (Trust::Dscp, 3, 3),
            (Trust::Both, 3, 3),
        ] {
            assert_eq!(
                maps(trust).priority(&tagged).get(),
                of_tagged,
                "{trust:?} tagged"
            );
            assert_eq!(
                maps(trust).priority(&plain).get(),
                of_plain,
                "{trust:?} untagged"
            );
            let table = maps(trust).table();
            assert_eq!(
                (table[5][26].get(), table[8][26].get()),
                (of_tagged, of_plain),
                "{trust:?}"
            );
        }
    }
}
