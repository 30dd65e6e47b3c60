//! Short keys of `set`, and the configuration paths that they stand for.
//!
//! | key | path |
//! |---|---|
//! | `npcc.PORT.N.action` | `ports.PORT.npcc.queue_actions.N` |
//! | `npcc.PORT.N.policy` | `ports.PORT.npcc.queue_policies.N` |
//! | `npcc.PORT.N.PARAMETER` | `ports.PORT.npcc.parameters.N.PARAMETER` |
//!
//! Every other key is a path already.

use npcc_cnp::control::settings::Settings;
use npcc_config::Config;

/// Returns the path of a key.
///
/// # Errors
/// Fails if there is no such port, or NPCC does not watch the queue.
pub fn path(key: &str, config: &Config) -> Result<String, String> {
    let Some((port, priority, what)) = of_queue(key) else {
        return Ok(key.to_owned());
    };
    let found = config.ports.iter().find(|one| one.name == port);
    let found = found.ok_or_else(|| format!("there is no port `{port}`; see show ports"))?;
    let mut watched = found.npcc.iter().flat_map(|npcc| npcc.priorities());
    if !watched.any(|one| one == priority) {
        return Err(format!("NPCC does not watch queue {priority} of {port}"));
    }
    let npcc = format!("ports.{port}.npcc");
    Ok(match what {
        "action" => format!("{npcc}.queue_actions.{priority}"),
        "policy" => format!("{npcc}.queue_policies.{priority}"),
        _ => format!("{npcc}.parameters.{priority}.{what}"),
    })
}

/// Returns a value as the configuration writes it: a bare number for a parameter gets the unit that `show npcc` uses.
pub fn value(path: &str, value: &str, settings: &Settings, config: &Config) -> String {
    let unit = || {
        let number: u64 = value.parse().ok()?;
        let (port, rest) = path
            .strip_prefix("ports.")?
            .split_once(".npcc.parameters.")?;
        let (priority, name) = rest.split_once('.')?;
        let port = config.ports.iter().position(|one| one.name == port)?;
        let mut queues = settings.queues.iter();
        let queue = queues.find(|queue| {
            queue.port.index() == port && queue.priority.get().to_string() == priority
        })?;
        let all = queue.policy.parameters();
        let parameter = all.iter().find(|one| one.name == name)?;
        Some(parameter.unit.text(number))
    };
    unit().unwrap_or_else(|| value.to_owned())
}

/// Returns the path of a queue's parameters, for the path of its policy: when the policy changes, they are those of the previous one.
pub fn parameters_of(path: &str) -> Option<String> {
    let (npcc, priority) = path.split_once(".npcc.queue_policies.")?;
    Some(format!("{npcc}.npcc.parameters.{priority}"))
}

/// Returns the paths of the policies that a parameter's path depends on: the queue's own, and that of its port.
pub fn policies_of(path: &str) -> Option<[String; 2]> {
    let (port, rest) = path.split_once(".npcc.parameters.")?;
    let priority = rest.split('.').next()?;
    Some([
        format!("{port}.npcc.queue_policies.{priority}"),
        format!("{port}.npcc.policy"),
    ])
}

/// Splits `npcc.PORT.N.REST` into port, priority and the rest.
fn of_queue(key: &str) -> Option<(&str, u8, &str)> {
    let (port, rest) = key.strip_prefix("npcc.")?.split_once('.')?;
    let (priority, what) = rest.split_once('.')?;
    let priority = priority.parse().ok().filter(|priority| *priority < 8u8)?;
    Some((port, priority, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version: 1
ports: [ { name: wan0, device: net_null0, speed: 10G, npcc: { queues: [3], policy: npcc } } ]
";

    #[test]
    fn short_keys_of_a_queue_are_paths() {
        let config = npcc_config::parse("t.yaml", TEXT).unwrap().config;
        for (key, expected) in [
            ("npcc.action", "npcc.action"),
            ("npcc.cnp.cap", "npcc.cnp.cap"),
            ("npcc.wan0.3.action", "ports.wan0.npcc.queue_actions.3"),
            ("npcc.wan0.3.policy", "ports.wan0.npcc.queue_policies.3"),
            ("npcc.wan0.3.few", "ports.wan0.npcc.parameters.3.few"),
        ] {
            assert_eq!(path(key, &config).as_deref(), Ok(expected));
        }
        for (key, word) in [
            ("npcc.lan9.3.few", "no port `lan9`"),
            ("npcc.wan0.5.few", "does not watch"),
        ] {
            assert!(path(key, &config).unwrap_err().contains(word), "{key}");
        }
        let policy = path("npcc.wan0.3.policy", &config).unwrap();
        let parameters = parameters_of(&policy).unwrap();
        assert_eq!(parameters, "ports.wan0.npcc.parameters.3");
        let few = path("npcc.wan0.3.few", &config).unwrap();
        assert_eq!(
            policies_of(&few).unwrap(),
            ["ports.wan0.npcc.queue_policies.3", "ports.wan0.npcc.policy"]
        );
        assert_eq!(policies_of(&policy), None);
    }

    #[test]
    fn a_bare_number_has_the_unit_of_its_parameter() {
        let config = npcc_config::parse("t.yaml", TEXT).unwrap().config;
        let settings = crate::wiring::npcc::settings(&config, &[None]);
        let of =
            |key: &str, text: &str| value(&path(key, &config).unwrap(), text, &settings, &config);
        assert_eq!(of("npcc.wan0.3.recovery", "500000"), "500us");
        assert_eq!(of("npcc.wan0.3.recovery", "500us"), "500us");
        assert_eq!(of("npcc.wan0.3.few", "70"), "70/1000");
        assert_eq!(of("npcc.wan0.3.set_point", "70"), "70");
        assert_eq!(of("npcc.filter", "3"), "3");
    }
}
