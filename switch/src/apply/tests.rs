//! Property test: any sequence of changes ends in the state of a start with the same file, the same overrides and the same links.

use std::collections::BTreeMap;
use std::path::Path;

use npcc_cnp::control::settings::Settings;
use npcc_config::{Config, parse};
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::egress::port::{EcnConfig, EgressQueueConfig};
use npcc_pipeline::units::{BitRate, Mac};
use proptest::prelude::*;

use super::desired::{DesiredState, ObservedLink};
use super::in_force::{ConfigInForce, take_live_keys};
use super::outcome::ApplyError;
use super::running::{RunningState, SwitchState, Target, Targets};
use crate::wiring::backend::{Backend, BackendChoice};
use crate::wiring::pfc::PfcState;
use npcc_engine::worker::command::WorkerCommand;

const BASE: &str = "version: 1
ports:
  - { name: dc0, device: net_null0, speed: 10G, mtu: 1500, addresses: [10.0.1.1/24] }
  - { name: wan0, device: '0000:3b:00.0', mtu: 1500, addresses: [10.0.12.1/24], npcc: { queues: [3, 4] } }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
qos: { profile: lossy, priorities: { 3: { weight: 50 }, 4: { weight: 20 } } }
buffer: { pool: 64MB }
npcc: { tick: 20us }
";

/// Returns variant `which` of the file; a running switch can take all of them.
fn file(which: usize) -> String {
    let (from, to) = [
        ("", ""),
        ("weight: 50", "weight: 20"),
        ("tick: 20us", "tick: 20us, recovery: 900us, action: observe"),
        (
            "queues: [3, 4]",
            "queues: [3, 4], policy: npcc, parameters: { 3: { few: 7% } }",
        ),
        ("speed: 10G", "speed: 1G"),
        ("10.0.2.0/24", "10.0.3.0/24"),
        (
            "tick: 20us",
            "tick: 20us, ecn: off, hosts: { deny: [10.0.1.9/32] }",
        ),
        ("weight: 20", "weight: 20, ecn: { kmin: 40KB, kmax: 90KB }"),
        (", npcc: { queues: [3, 4] }", ""),
        ("profile: lossy", "profile: lossy, trust: pcp"),
    ][which];
    BASE.replacen(from, to, 1)
}

/// Keys with two values each; no key lies within another, and none depends on another.
const KEYS: [(&str, [&str; 2]); 9] = [
    ("npcc.action", ["off", "observe"]),
    ("npcc.recovery", ["400us", "500us"]),
    ("ports.dc0.speed", ["2G", "5G"]),
    ("qos.priorities.3.weight", ["7", "8"]),
    ("qos.priorities.4.ecn.kmin", ["20KB", "30KB"]),
    ("npcc.hosts.observe", ["[10.0.1.0/24]", "[10.0.1.8/29]"]),
    ("npcc.hosts.unresponsive", ["{ queue: 5 }", "{ queue: 2 }"]),
    ("npcc.wan0.3.action", ["off", "observe"]),
    ("npcc.wan0.4.policy", ["model", "npcc"]),
];

#[derive(Debug, Clone)]
enum Step {
    Set(usize, usize),
    /// A parameter that the queue's policy may not have.
    Parameter(u8, usize),
    Unset(usize),
    UnsetAll,
    Reload(usize, bool),
    Commit,
    Rollback,
    /// The link of a port, its administrative state, and its speed.
    Link(usize, (bool, bool), Option<u32>),
    /// The next change fails at this target.
    Fail(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..KEYS.len(), 0..2usize).prop_map(|(key, value)| Step::Set(key, value)),
        2 => (3..5u8, 0..3usize).prop_map(|(queue, name)| Step::Parameter(queue, name)),
        2 => (0..KEYS.len()).prop_map(Step::Unset),
        1 => Just(Step::UnsetAll),
        3 => (0..10usize, any::<bool>()).prop_map(|(file, pending)| Step::Reload(file, pending)),
        1 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        3 => (0..2usize, any::<(bool, bool)>(), prop_oneof![Just(None), Just(Some(25_000)), Just(Some(100_000))])
            .prop_map(|(port, up, mbps)| Step::Link(port, up, mbps)),
        1 => (0..3usize).prop_map(Step::Fail),
    ]
}

/// State of a port in the fake workers.
#[derive(Debug, Clone)]
struct Port {
    up: bool,
    admin_up: bool,
    rate: Option<BitRate>,
    link: BitRate,
    queues: [EgressQueueConfig; 8],
    classifier: Classifier,
    ecn: EcnConfig,
}

/// Fake targets that record the state they were given.
#[derive(Debug, Clone)]
struct Fakes {
    ports: Vec<Port>,
    control: Settings,
    routes: Config,
    fails: Option<Target>,
}

impl Fakes {
    /// Returns the targets as after a start.
    fn started(config: &Config, desired: &DesiredState) -> Fakes {
        let port = |port: &super::desired::PortState| Port {
            up: port.up,
            admin_up: port.admin_up,
            rate: port.config.egress.rate,
            link: port.speeds.link,
            queues: port.config.egress.queues.clone(),
            classifier: port.config.intake.classifier.clone(),
            ecn: port.config.ecn,
        };
        Fakes {
            ports: desired.ports.iter().map(port).collect(),
            control: desired.control.clone(),
            routes: config.clone(),
            fails: None,
        }
    }

    fn take(&mut self, command: WorkerCommand) {
        match command {
            WorkerCommand::Queue {
                port,
                priority,
                config,
            } => self.ports[port.index()].queues[priority.index()] = config,
            WorkerCommand::Classifier { port, classifier } => {
                self.ports[port.index()].classifier = classifier;
            }
            WorkerCommand::Ecn { port, ecn } => self.ports[port.index()].ecn = ecn,
            WorkerCommand::PortAdmin { port, up } => self.ports[port.index()].admin_up = up,
            WorkerCommand::LinkDown { port } => self.ports[port.index()].up = false,
            WorkerCommand::ConfigurePort { port, settings } => {
                let held = &mut self.ports[port.index()];
                held.up = true;
                held.rate = settings.port.egress.rate;
                held.link = settings.link;
                held.queues = settings.port.egress.queues;
                held.ecn = settings.port.ecn;
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns all observable state; a port that is down gets its rates when it comes up.
    fn seen(&self) -> String {
        let mut ports = self.ports.clone();
        for port in ports.iter_mut().filter(|port| !port.up) {
            (port.rate, port.link) = (None, BitRate(0));
        }
        let routes = (&self.routes.routes, &self.routes.neighbors);
        format!("{ports:#?}\n{:#?}\n{routes:#?}", self.control)
    }
}

impl Targets for Fakes {
    fn apply_to(
        &mut self,
        target: Target,
        (_, from): SwitchState<'_>,
        (config, to): SwitchState<'_>,
    ) -> Result<(), String> {
        if self.fails == Some(target) {
            self.fails = None;
            if target == Target::Control {
                // The control core took a part of it.
                self.control = to.control.clone();
            }
            return Err("does not listen".to_owned());
        }
        match target {
            Target::Routes => self.routes = config.clone(),
            Target::Workers => from.commands(to).into_iter().for_each(|one| self.take(one)),
            Target::Control => self.control = to.control.clone(),
        }
        Ok(())
    }
}

fn links() -> Vec<ObservedLink> {
    let link = |n: u8| ObservedLink {
        mac: Mac([2, 0, 0, 0, 0, n]),
        up: true,
        admin_up: true,
        mbps: None,
        pfc: PfcState::of(BackendChoice::of(Backend::None, ""), (0, 0)),
    };
    vec![link(0), link(1)]
}

/// Model of the values that `set` has changed, by the words of the documentation.
type Model = BTreeMap<&'static str, &'static str>;

struct Case {
    path: std::path::PathBuf,
    running: RunningState,
    fakes: Fakes,
    links: Vec<ObservedLink>,
    /// File that was last accepted, and the values set over it.
    now: (usize, Model),
    before: Option<(usize, Model)>,
}

/// Returns the keys on which two files differ.
fn changed(old: usize, new: usize) -> Vec<String> {
    let read = |which| parse("t.yaml", &file(which)).unwrap().file;
    let all = npcc_config::differences(&read(old), &read(new));
    all.into_iter().map(|one| one.key).collect()
}

impl Case {
    fn new(folder: &Path) -> Case {
        let path = folder.join("switch.yaml");
        let loaded = parse("switch.yaml", BASE).unwrap();
        let links = links();
        let desired = DesiredState::new(&loaded.config, &links);
        let fakes = Fakes::started(&loaded.config, &desired);
        let running = RunningState::new(path.clone(), &loaded, desired);
        Case {
            path,
            running,
            fakes,
            links,
            now: (0, Model::new()),
            before: None,
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), ApplyError> {
        let (running, links, fakes) = (&mut self.running, &self.links, &mut self.fakes);
        match *step {
            Step::Set(key, value) => {
                let (key, values) = KEYS[key];
                running.set((key, values[value]), links, fakes)?;
                self.now.1.insert(key, values[value]);
            }
            Step::Parameter(queue, name) => {
                let (name, value) =
                    [("few", "70"), ("recovery", "300us"), ("set_point", "900us")][name];
                let key = format!("npcc.wan0.{queue}.{name}");
                running.set((&key, value), links, fakes)?;
            }
            Step::Unset(key) => {
                running.unset(Some(KEYS[key].0), links, fakes)?;
                self.now.1.remove(KEYS[key].0);
            }
            Step::UnsetAll => {
                running.unset(None, links, fakes)?;
                self.now.1.clear();
            }
            Step::Reload(which, pending) => {
                std::fs::write(&self.path, file(which)).unwrap();
                let (effective, _) = running.plan_reload(load(&self.path)?)?;
                running.reload(effective, pending, links, fakes)?;
                let old = self.now.clone();
                let changed = changed(self.now.0, which);
                self.now.0 = which;
                self.now.1.retain(|key, _| {
                    let config = &parse("t.yaml", BASE).unwrap().config;
                    let path = super::keys::path(key, config).unwrap();
                    let within = |a: &str, b: &str| npcc_config::is_within(a, b);
                    !changed
                        .iter()
                        .any(|key| within(&path, key) || within(key, &path))
                });
                if pending {
                    self.before.get_or_insert(old);
                }
            }
            Step::Commit => {
                assert_eq!(running.commit(), self.before.take().is_some());
            }
            Step::Rollback => {
                let done = running.rollback(links, fakes);
                assert_eq!(done.is_some(), self.before.is_some());
                if let Some(done) = done {
                    done?;
                    self.now = self.before.take().unwrap();
                }
            }
            Step::Link(port, (up, admin_up), mbps) => {
                let mut links = self.links.clone();
                let up = up && admin_up;
                (links[port].up, links[port].admin_up) = (up, admin_up);
                if up {
                    links[port].mbps = mbps;
                }
                // If a worker timed out, the next poll tries again.
                if running.apply_links(&links, fakes).is_ok() {
                    self.links = links;
                }
            }
            Step::Fail(target) => {
                fakes.fails = Some([Target::Routes, Target::Workers, Target::Control][target]);
            }
        }
        Ok(())
    }

    /// Checks the law after a step.
    fn holds(&mut self, step: &Step) {
        let effective = self.running.in_force();
        let read = parse("t.yaml", &file(self.now.0)).unwrap().file;
        assert_eq!(effective.last_read, read, "{step:?}");
        let config = &parse("t.yaml", BASE).unwrap().config;
        let set: BTreeMap<String, &str> = effective
            .overrides
            .iter()
            .filter(|(path, _)| !path.contains(".parameters"))
            .map(|(path, value)| (path.to_owned(), value))
            .collect();
        let model = self.now.1.iter();
        let model = model.map(|(key, value)| (super::keys::path(key, config).unwrap(), *value));
        assert_eq!(set, model.collect(), "{step:?}");
        let started =
            ConfigInForce::new("t.yaml", &read, read.clone(), effective.overrides.clone());
        let started = started.unwrap().config;
        assert_eq!(effective.config, started, "{step:?}");
        let desired = DesiredState::new(&started, &self.links);
        let fresh = Fakes::started(&started, &desired);
        // A core that did not take the settings of a link gets them at the next poll of the links.
        if self.running.is_control_behind() {
            self.running
                .apply_links(&self.links, &mut self.fakes)
                .unwrap();
        }
        similar_asserts(&self.fakes.seen(), &fresh.seen(), step);
    }
}

fn similar_asserts(held: &str, fresh: &str, step: &Step) {
    let differs = held.lines().zip(fresh.lines()).find(|(a, b)| a != b);
    assert!(held == fresh, "{step:?}: {differs:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_changes_end_as_a_start_with_the_same_file_overrides_and_links(
        steps in prop::collection::vec(step(), 1..24)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut case = Case::new(folder.path());
        for step in &steps {
            // A refused step changes nothing.
            let _ = case.take(step);
            case.holds(step);
        }
    }
}

#[test]
fn a_reload_keeps_what_was_set_unless_the_file_changes_it_and_lists_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::new(folder.path());
    for set in [Step::Set(3, 0), Step::Set(0, 1)] {
        case.take(&set).unwrap();
    }
    std::fs::write(&case.path, file(1)).unwrap();
    let (_, outcome) = case.running.plan_reload(load(&case.path).unwrap()).unwrap();
    let keys = |all: &[npcc_config::Difference]| -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    };
    assert_eq!(keys(&outcome.applied), ["qos.priorities.3.weight: 7 -> 20"]);
    assert_eq!(keys(&outcome.kept), ["npcc.action: send -> observe"]);
    let said = outcome.to_string();
    assert!(
        said.contains("still set      npcc.action: send -> observe"),
        "{said}"
    );
}

/// Law: parameters belong to a policy: another one, by `set` or by the file, does not find those that were set for it.
#[test]
fn parameters_that_were_set_go_with_their_policy() {
    const FEW: (&str, &str) = ("npcc.wan0.4.few", "70");
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::new(folder.path());
    let set = |case: &mut Case, what| case.running.set(what, &case.links, &mut case.fakes);
    let reload = |case: &mut Case, policy: &str| {
        let queues = format!("queues: [3, 4], policy: {policy}");
        std::fs::write(&case.path, BASE.replacen("queues: [3, 4]", &queues, 1)).unwrap();
        let (effective, _) = case.running.plan_reload(load(&case.path)?)?;
        case.running
            .reload(effective, false, &case.links, &mut case.fakes)
    };
    let has_few = |case: &Case| {
        let mut all = case.running.in_force().overrides.iter();
        all.any(|(path, _)| path.ends_with(".parameters.4.few"))
    };
    reload(&mut case, "npcc").unwrap();
    set(&mut case, FEW).unwrap();
    assert!(has_few(&case));
    set(&mut case, ("npcc.wan0.4.policy", "npcc")).unwrap();
    assert!(!has_few(&case), "the policy is set anew");
    set(&mut case, FEW).unwrap();
    case.running
        .unset(None, &case.links, &mut case.fakes)
        .unwrap();
    set(&mut case, FEW).unwrap();
    reload(&mut case, "model").unwrap();
    assert!(!has_few(&case), "the file has another policy");
}

#[test]
fn npcc_of_a_port_is_taken_out_and_put_back_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::new(folder.path());
    let watched = |case: &Case| case.fakes.control.queues.len();
    assert_eq!(watched(&case), 2);
    for (which, expected) in [(8, 0), (0, 2)] {
        std::fs::write(&case.path, file(which)).unwrap();
        let (_, outcome) = case.running.plan_reload(load(&case.path).unwrap()).unwrap();
        assert!(
            outcome.restart.is_empty() && outcome.applied.len() == 1,
            "{outcome}"
        );
        let reload = Step::Reload(which, false);
        case.take(&reload).unwrap();
        case.holds(&reload);
        assert_eq!(watched(&case), expected);
    }
}

#[test]
fn npcc_that_a_port_was_started_without_is_not_enabled() {
    let on = parse("t.yaml", BASE).unwrap().file;
    let off = BASE.replacen("npcc: { queues", "npcc: { enable: false, queues", 1);
    let off = parse("t.yaml", &off).unwrap().file;
    for (started, new) in [(&off, &on), (&on, &off)] {
        let taken = take_live_keys(started, new);
        assert!(!taken.ports[1].npcc.as_ref().unwrap().enable);
    }
}

/// Law: `set` reports the old value and the new; a mistake elsewhere has its place in the text that `show config` prints.
#[test]
fn what_is_set_is_reported_with_the_old_value_and_mistakes_with_a_place_that_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::new(folder.path());
    let mut set = |what| case.running.set(what, &case.links, &mut case.fakes);
    let outcome = set(("qos.priorities.3.weight", "7")).unwrap();
    assert_eq!(
        outcome.to_string(),
        "applied        qos.priorities.3.weight: 50 -> 7\n"
    );
    let outcome = set(("npcc.action", "observe")).unwrap();
    assert!(outcome.to_string().lines().count() == 1, "{outcome}");
    // What is wrong then is the other threshold.
    let why = set(("npcc.shallow", "900us")).unwrap_err().to_string();
    let mut places = why.lines().filter(|line| line.contains(": error: "));
    assert!(
        places.all(|line| line.starts_with("npcc-switch show config:")),
        "{why}"
    );
    assert!(why.contains(": error: "), "{why}");
}

#[test]
fn what_needs_a_restart_is_not_set() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::new(folder.path());
    for (key, value) in [
        ("npcc.tick", "40us"),
        ("qos.profile", "roce-lossless"),
        ("buffer.pool", "2MB"),
        // The checks refuse this value as well; a value that they accept would wait for a restart all the same.
        ("buffer.pool", "1KB"),
    ] {
        let before = case.fakes.seen();
        let refused = case.running.set((key, value), &case.links, &mut case.fakes);
        let why = refused.unwrap_err().to_string();
        assert!(
            why.contains(key) && why.contains("needs a restart"),
            "{why}"
        );
        assert_eq!(case.fakes.seen(), before);
    }
}

fn load(path: &Path) -> Result<npcc_config::Loaded, ApplyError> {
    npcc_config::load(path).map_err(|report| ApplyError::Invalid(report.to_string()))
}

/// Reads another file in a switch that was started with `BASE`.
fn read(text: &str) -> Result<npcc_api::outcome::Outcome, ApplyError> {
    let folder = tempfile::tempdir().unwrap();
    let case = Case::new(folder.path());
    std::fs::write(&case.path, text).unwrap();
    case.running
        .plan_reload(load(&case.path)?)
        .map(|(_, outcome)| outcome)
}

#[test]
fn each_key_is_applied_or_waits_for_a_restart() {
    let text = BASE
        .replace(
            "queues: [3, 4]",
            "queues: [3, 4], policy: npcc, deep: 190us",
        )
        .replace("speed: 10G", "speed: 9G, link_speed: 25G")
        .replace("10.0.2.0/24", "10.0.3.0/24")
        .replace("weight: 50", "weight: 20")
        .replace("tick: 20us", "tick: 40us, recovery: 500us");
    let outcome = read(&text).unwrap();
    let keys = |changes: &[npcc_config::Difference]| -> Vec<String> {
        changes.iter().map(|one| one.key.clone()).collect()
    };
    assert_eq!(
        keys(&outcome.applied),
        [
            "npcc.recovery",
            "ports.dc0.speed",
            "ports.wan0.npcc.deep",
            "ports.wan0.npcc.policy",
            "qos.priorities.3.weight",
            "routes.10.0.2.0/24",
            "routes.10.0.3.0/24"
        ]
    );
    assert_eq!(
        keys(&outcome.restart),
        ["npcc.tick", "ports.dc0.link_speed"]
    );
    let said = outcome.to_string();
    assert!(
        said.contains("applied        npcc.recovery: 300us -> 500us"),
        "{said}"
    );
    assert!(
        said.contains("needs restart  npcc.tick: 20us -> 40us"),
        "{said}"
    );
    assert!(read(BASE).unwrap().to_string().contains("nothing differs"));
}

#[test]
fn a_lossless_queue_more_keeps_all_queues_as_they_are() {
    let text = BASE.replace("3: { weight: 50 }", "3: { weight: 20, lossless: true }");
    let outcome = read(&text).unwrap();
    assert_eq!(outcome.applied, []);
    let restart: Vec<&str> = outcome.restart.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(
        restart,
        ["qos.priorities.3.lossless", "qos.priorities.3.weight"]
    );
}

#[test]
fn mistakes_and_files_that_do_not_fit_what_runs_change_nothing() {
    let wrong = read(&BASE.replace("10.0.2.0/24", "10.0.2.1/24"));
    let text = wrong.unwrap_err().to_string();
    assert!(text.contains("switch.yaml:5:21"), "{text}");
    // The route's next hop is on a port that does not run yet.
    let port = "  - { name: wan1, device: net_null2, addresses: [10.0.77.1/24] }\nroutes:";
    let text = BASE
        .replace("routes:", port)
        .replace("via: 10.0.12.2", "via: 10.0.77.2");
    let refused = read(&text).unwrap_err();
    assert!(matches!(refused, ApplyError::NeedsRestart { .. }));
    let text = refused.to_string();
    assert!(
        text.contains("ports.wan1") && text.contains("10.0.77.2"),
        "{text}"
    );
}

/// Targets that refuse from the `fails`-th change on.
struct Silent {
    fails: usize,
    reported: Vec<Target>,
}

impl Targets for Silent {
    fn apply_to(
        &mut self,
        target: Target,
        _: SwitchState<'_>,
        _: SwitchState<'_>,
    ) -> Result<(), String> {
        self.reported.push(target);
        if self.reported.len() >= self.fails {
            return Err(format!("{target:?} does not listen"));
        }
        Ok(())
    }
}

#[test]
fn what_cannot_be_taken_back_is_said() {
    let tried = |fails: usize| {
        let folder = tempfile::tempdir().unwrap();
        let mut case = Case::new(folder.path());
        let mut silent = Silent {
            fails,
            reported: Vec::new(),
        };
        let refused = case
            .running
            .set(("npcc.action", "off"), &case.links, &mut silent);
        (refused.unwrap_err().to_string(), silent.reported)
    };
    let (why, reported) = tried(1);
    assert_eq!(why, "Routes does not listen: nothing was changed");
    assert_eq!(reported, [Target::Routes]);
    let (why, reported) = tried(3);
    assert!(why.contains("restart the switch"), "{why}");
    let back = [Target::Control, Target::Workers, Target::Routes];
    assert_eq!(reported[3..], back, "the last first");
}

/// Targets whose control core takes nothing; the settings each of its changes went from and to.
#[derive(Default)]
struct Stopping(Vec<[Settings; 2]>);

impl Targets for Stopping {
    fn apply_to(
        &mut self,
        target: Target,
        (_, from): SwitchState<'_>,
        (_, to): SwitchState<'_>,
    ) -> Result<(), String> {
        if target != Target::Control {
            return Ok(());
        }
        self.0.push([from.control.clone(), to.control.clone()]);
        Err("stops".to_owned())
    }
}

#[test]
fn a_control_core_that_takes_no_change_of_links_keeps_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::new(folder.path());
    let mut stopping = Stopping::default();
    for mbps in [25_000, 100_000] {
        case.links[1].mbps = Some(mbps);
        case.running
            .apply_links(&case.links, &mut stopping)
            .unwrap();
    }
    let [first, second] = &stopping.0[..] else {
        panic!("{} changes", stopping.0.len());
    };
    assert!(first[0] != first[1]);
    assert!(second[0] == first[0]);
}

/// Control core that hangs: each attempt times out.
struct Hangs {
    attempts: usize,
}

impl Targets for Hangs {
    fn apply_to(
        &mut self,
        target: Target,
        _: SwitchState<'_>,
        _: SwitchState<'_>,
    ) -> Result<(), String> {
        if target != Target::Control {
            return Ok(());
        }
        self.attempts += 1;
        Err("does not listen".to_owned())
    }
}

/// Returns a case in a folder, and its links with the second one slower.
fn case_and_slower_link() -> (tempfile::TempDir, Case, Vec<ObservedLink>) {
    let folder = tempfile::tempdir().unwrap();
    let case = Case::new(folder.path());
    let mut links = case.links.clone();
    links[1].mbps = Some(25_000);
    (folder, case, links)
}

#[test]
fn a_control_core_that_missed_a_links_change_gets_it_once_it_has_ticked() {
    let (_folder, mut case, links) = case_and_slower_link();
    let (running, mut tried) = (&mut case.running, 7);
    let wanted = DesiredState::new(&running.in_force().config, &links).control;
    let before = format!("{:?}", case.fakes.control);
    assert_ne!(
        before,
        format!("{wanted:?}"),
        "the change is one of thresholds"
    );
    let mut hangs = Hangs { attempts: 0 };
    running.apply_links(&links, &mut hangs).unwrap();
    assert!(running.is_control_behind());
    let mut catch_up = |ticks| running.catch_up((ticks, &mut tried), &links, &mut case.fakes);
    assert!(!catch_up(7), "it has not ticked");
    assert!(catch_up(8), "it has ticked");
    assert!(!catch_up(9), "it has all");
    assert_eq!(format!("{:?}", case.fakes.control), format!("{wanted:?}"));
}

#[test]
fn a_control_core_that_hangs_is_tried_once_and_not_waited_for_again() {
    let (_folder, mut case, links) = case_and_slower_link();
    let mut hangs = Hangs { attempts: 0 };
    case.running.apply_links(&links, &mut hangs).unwrap();
    let mut tried = 0;
    for _ in 0..100 {
        case.running.catch_up((7, &mut tried), &links, &mut hangs);
    }
    assert_eq!(hangs.attempts, 2, "the change, and one attempt more");
    // It ticks, and hangs again.
    case.running.catch_up((8, &mut tried), &links, &mut hangs);
    assert_eq!(
        (hangs.attempts, case.running.is_control_behind()),
        (3, true)
    );
}
