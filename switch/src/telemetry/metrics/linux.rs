//! Metrics of the control plane: frames given to Linux, ICMP errors made in its stead, frames it sends, and how its routes are
//! followed. All are 0 where Linux is not integrated.

use std::fmt;

use npcc_api::punt::Class;
use npcc_api::routes::Linux;

use super::family::{Samples, families};
use super::scrape::{Scrape, seconds};

/// Writes a counter of each class.
fn classes(all: &Scrape, to: &mut Samples<'_>, of: fn(&Class) -> u64) -> fmt::Result {
    let mut classes = all.snapshot.punt.classes.iter();
    classes.try_for_each(|class| to.count(&[("class", &class.name)], of(class)))
}

/// Writes numbers that differ in one label.
fn numbers<const N: usize>(
    to: &mut Samples<'_>,
    label: &'static str,
    all: [(&'static str, usize); N],
) -> fmt::Result {
    let mut all = all.into_iter();
    all.try_for_each(|(kind, number)| to.gauge(&[(label, kind)], number as u64))
}

families! {
    "npcc_punt_frames" Counter "Frames of the class given to Linux; of unresolved the questions asked, of icmp_errors the errors made." |all, to|
        classes(all, to, |class| class.punted);
    "npcc_punt_bytes" Counter "Bytes of the class given to Linux." |all, to|
        classes(all, to, |class| class.bytes);
    "npcc_punt_drops" Counter "Frames of the class dropped: it was past its rate (over_rate), or its queue was full." |all, to| {
        for class in &all.snapshot.punt.classes {
            to.count(&[("class", &class.name), ("cause", "over_rate")], class.over_rate)?;
            to.count(&[("class", &class.name), ("cause", "full")], class.full)?;
        }
        Ok(())
    };
    "npcc_punt_delivered_frames" Counter "Frames of the class that Linux took." |all, to|
        classes(all, to, |class| class.delivered);
    "npcc_punt_refused_frames" Counter "Frames of the class that Linux refused." |all, to|
        classes(all, to, |class| class.refused);
    "npcc_punt_waiting_bytes" Gauge "Bytes of the class that wait for Linux." |all, to| {
        let mut classes = all.snapshot.punt.classes.iter();
        classes.try_for_each(|class| to.gauge(&[("class", &class.name)], class.waiting))
    };
    "npcc_linux_integrated" Gauge "1 where Linux is the control plane, 0 where the routes are the file's." |all, to|
        to.holds(&[], all.linux.integrated);
    "npcc_draining" Gauge "1 while the switch's traffic is taken away by drain." |all, to|
        to.holds(&[], all.linux.draining_s.is_some());
    "npcc_linux_kernel_prefixes" Gauge "Prefixes in the kernel's tables, by family." |all, to| {
        let Linux { kernel_ipv4, kernel_ipv6, .. } = all.linux;
        numbers(to, "family", [("ipv4", kernel_ipv4), ("ipv6", kernel_ipv6)])
    };
    "npcc_linux_prefixes" Gauge "Prefixes by what became of them: installed in the switch, left_out (no next hop behind a port of ours), refused (no room)." |all, to| {
        let Linux { installed, left_out, refused, .. } = all.linux;
        numbers(to, "state", [("installed", installed), ("left_out", left_out), ("refused", refused)])
    };
    "npcc_linux_next_hop_groups" Gauge "Groups of next hops that the switch has." |all, to|
        to.gauge(&[], all.linux.groups as u64);
    "npcc_linux_netlink_messages" Counter "Messages of the kernel that were read." |all, to|
        to.count(&[], all.linux.messages);
    "npcc_linux_netlink_malformed" Counter "Messages of the kernel that lacked what they cannot do without." |all, to|
        to.count(&[], all.linux.malformed);
    "npcc_linux_netlink_overruns" Counter "Times the kernel had to throw messages away; a comparison follows each." |all, to|
        to.count(&[], all.linux.overruns);
    "npcc_linux_refused_neighbors" Counter "Times a neighbour's MAC address was refused as no host's: a group's, broadcast, zero, or of a port of ours." |all, to|
        to.count(&[], all.linux.refused_neighbors);
    "npcc_linux_lookups" Counter "Packets whose way Linux was asked for, to hold the switch's against it." |all, to|
        to.count(&[], all.linux.lookups);
    "npcc_linux_lookups_differing" Counter "Those that Linux would send another way than the switch, in two rounds: an event each." |all, to|
        to.count(&[], all.linux.lookups_differing);
    "npcc_linux_comparisons" Counter "Comparisons of the kernel's routes with the switch's." |all, to|
        to.count(&[], all.linux.comparisons);
    "npcc_linux_comparison_faults" Counter "Differences that a comparison found though nothing was under way, each mended at once." |all, to|
        to.count(&[], all.linux.faults);
    "npcc_linux_comparison_differences" Gauge "Differences that the last comparison found and mended." |all, to|
        to.gauge(&[], all.linux.differences as u64);
    "npcc_linux_comparison_seconds" Gauge "How long the last comparison took." |all, to|
        to.real(&[], seconds(all.linux.compared_us.saturating_mul(1_000)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::{Format, text};

    #[test]
    fn metrics_of_the_kernels_routes_are_as_show_linux_has_them() {
        let linux = Linux {
            integrated: true,
            draining_s: Some(0),
            kernel_ipv6: 160_147,
            refused: 7,
            overruns: 3,
            faults: 2,
            compared_us: 1_500_000,
            ..Linux::default()
        };
        let scrape = Scrape {
            linux,
            ..Scrape::default()
        };
        let reported = text(scrape, Format::Classic).unwrap();
        for line in [
            "npcc_linux_integrated 1",
            "npcc_draining 1",
            "npcc_linux_kernel_prefixes{family=\"ipv6\"} 160147",
            "npcc_linux_prefixes{state=\"refused\"} 7",
            "npcc_linux_netlink_overruns_total 3",
            "npcc_linux_comparison_faults_total 2",
            "npcc_linux_comparison_seconds 1.5",
        ] {
            assert!(
                reported.lines().any(|one| one == line),
                "{line}: {reported}"
            );
        }
    }
}
