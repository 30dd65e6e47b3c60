//! `linux:` Linux as the control plane.

use npcc_pipeline::punt::PuntClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Ranged};

npcc_pipeline::defaults! {
    /// Linux as the control plane.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Linux {
        /// A TAP a port and VLAN: Linux answers ARP, ND and ICMP, and its routes and neighbours are ours.
        pub integrate: bool = false,
        /// Network namespace of the TAPs: a name, or `none` for the one the switch was started in.
        pub netns: String = "npcc".to_owned(),
        /// What the kernel may hold of news for us before it drops some; 64KiB to 1GiB.
        pub receive_buffer: Bytes = Bytes(16 << 20),
        /// What Linux is given, and at which rates.
        pub punt: Punt = Punt::default(),
    }
}

impl Linux {
    /// The namespace the TAPs are put in; `None` for the one the switch was started in.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        (self.netns != "none").then_some(self.netns.as_str())
    }
}

/// Frames a second.
pub type FrameRate = Ranged<1, 1_000_000>;

/// Declares the section: a key a class of frames, with its default.
macro_rules! punt {
    ($($(#[$doc:meta])+ $Class:ident = $key:ident, drop $Reason:ident, queue $size:literal KiB, rate $rate:literal;)+) => {
        /// What Linux is given of each class, and what is made in its stead, in frames a second of each worker.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Punt {
            $($(#[$doc])+ pub $key: FrameRate,)+
            /// Questions for the MAC address of a next hop.
            pub unresolved: FrameRate,
            /// ICMP errors this switch makes itself: time exceeded, unreachable, too big.
            pub icmp_errors: FrameRate,
        }

        impl Default for Punt {
            fn default() -> Self {
                Self {
                    $($key: Ranged::fixed($rate),)+
                    unresolved: Ranged::fixed(1_000),
                    icmp_errors: Ranged::fixed(1_000),
                }
            }
        }

        impl Punt {
            /// The rate of a class.
            #[must_use]
            pub const fn of(&self, class: PuntClass) -> FrameRate {
                match class { $(PuntClass::$Class => self.$key,)+ }
            }
        }
    };
}

npcc_pipeline::punt_classes! { punt }
