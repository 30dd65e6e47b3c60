//! Checks of the cores of workers and control thread: online, isolated, undisturbed and at full speed.

use std::collections::BTreeSet;

use npcc_config::model::Idle;
use npcc_config::{Config, cpu_list};

use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::Host;
use crate::pci::kernel_words;

/// Folder in which the kernel shows its cores.
const CPU: &str = "/sys/devices/system/cpu";

pub(crate) fn examine(host: &Host, config: &Config, found: &mut Vec<Finding>) {
    let mut busy: BTreeSet<usize> = config.cores.workers.iter().copied().collect();
    busy.insert(config.cores.control);
    let online = host.read(format!("{CPU}/online"));
    let online = online.map(|online| cpu_list::read(&online));
    let all = busy.iter().copied().chain(config.cores.housekeeping);
    for core in all.collect::<BTreeSet<usize>>() {
        if online
            .as_ref()
            .is_some_and(|online| !online.contains(&core))
        {
            found.push(Finding {
                check: Check::CoreMissing,
                severity: Severity::Error,
                place: format!("core {core}"),
                what: "a configured core is not online".to_owned(),
                mend: Mend::ByHand(format!(
                    "cat {CPU}/online   # for cores.control, cores.workers, cores.housekeeping"
                )),
            });
            busy.remove(&core);
        }
    }
    // Workers that share their cores with other work do not isolate them.
    if config.cores.idle == Idle::Poll {
        match online.filter(|online| !online.is_empty() && online.is_subset(&busy)) {
            Some(online) => no_core_left(&online, found),
            None => isolation(host, &busy, found),
        }
    }
    siblings(host, &busy, found);
    governor(host, &busy, found);
}

/// Reports that the switch polls on every core: none can be isolated, as the kernel and other programs need one.
fn no_core_left(online: &BTreeSet<usize>, found: &mut Vec<Finding>) {
    found.push(Finding {
        check: Check::CoreNotIsolated,
        severity: Severity::Warning,
        place: format!("core {}", cpu_list::write(online)),
        what: "the switch polls on all cores of this host, and the kernel's and other programs' work delays frames for milliseconds".to_owned(),
        mend: Mend::ByHand(format!(
            "cat {CPU}/online   # leave a core to the kernel: a host with more cores, fewer cores.workers, or cores.idle: adaptive"
        )),
    });
}

fn isolation(host: &Host, busy: &BTreeSet<usize>, found: &mut Vec<Finding>) {
    let list = |file: &str| {
        host.read(format!("{CPU}/{file}"))
            .map(|text| cpu_list::read(&text))
    };
    let cores = cpu_list::write(busy);
    let words = format!("isolcpus=managed_irq,domain,{cores} nohz_full={cores} rcu_nocbs={cores}");
    if let Some(isolated) = list("isolated") {
        let shared: BTreeSet<usize> = busy.difference(&isolated).copied().collect();
        if !shared.is_empty() {
            found.push(Finding {
                check: Check::CoreNotIsolated,
                severity: Severity::Warning,
                place: format!("core {}", cpu_list::write(&shared)),
                what: "the kernel runs other programs on a core that polls: frames wait for milliseconds meanwhile (isolcpus)".to_owned(),
                mend: Mend::Reboot(kernel_words(host, &words)),
            });
        }
    }
    // A kernel without it has no such file.
    let quiet = list("nohz_full").unwrap_or_default();
    let ticked: BTreeSet<usize> = busy.difference(&quiet).copied().collect();
    if !ticked.is_empty() {
        found.push(Finding {
            check: Check::CoreTick,
            severity: Severity::Note,
            place: format!("core {}", cpu_list::write(&ticked)),
            what: "the kernel's tick interrupts a core that polls, 100 to 1,000 times a second (nohz_full)".to_owned(),
            mend: Mend::Reboot(kernel_words(host, &words)),
        });
    }
}

fn siblings(host: &Host, busy: &BTreeSet<usize>, found: &mut Vec<Finding>) {
    let isolated = cpu_list::read(&host.read(format!("{CPU}/isolated")).unwrap_or_default());
    for &core in busy {
        let threads = host.read(format!("{CPU}/cpu{core}/topology/thread_siblings_list"));
        let threads = cpu_list::read(&threads.unwrap_or_default());
        for other in threads.into_iter().filter(|other| *other != core) {
            // A pair of the switch's own is reported once.
            if busy.contains(&other) && other < core {
                continue;
            }
            if isolated.contains(&other) && !busy.contains(&other) {
                continue;
            }
            let whose = if busy.contains(&other) {
                "the switch polls that, too"
            } else {
                "other programs run there"
            };
            found.push(Finding {
                check: Check::CoreSibling,
                severity: Severity::Warning,
                place: format!("core {core}"),
                what: format!(
                    "it shares its execution units with the hardware thread {other}, and {whose}"
                ),
                mend: Mend::ByHand(format!(
                    "echo 0 > {CPU}/cpu{other}/online   # or other cores in the configuration"
                )),
            });
        }
    }
}

fn governor(host: &Host, busy: &BTreeSet<usize>, found: &mut Vec<Finding>) {
    for core in busy {
        let file = format!("{CPU}/cpu{core}/cpufreq/scaling_governor");
        if let Some(governor) = host
            .read(&file)
            .filter(|governor| governor != "performance")
        {
            found.push(Finding {
                check: Check::Governor,
                severity: Severity::Warning,
                place: format!("core {core}"),
                what: format!(
                    "its frequency is governed by {governor}: it may run slower than it can"
                ),
                mend: Mend::Now(format!("echo performance > {file}")),
            });
        }
    }
}
