//! `set qos.priorities.N.ecn.*` and `.wred.*`: marking and early drop of a queue change on all ports while the switch runs.
//!
//! Law: what a configuration file may not say, `set` may not either: thresholds stay in order, and a lossless queue's `kmax`
//! stays below its least XOFF.

use npcc_config::Config;
use npcc_config::model::{Ecn, Wred};
use npcc_config::plan::PriorityPlan;
use npcc_config::sizing::{Lossless, link_speed};

use super::orders::Management;

/// The keys below `qos.priorities.N.`.
pub const KEYS: [&str; 7] = [
    "ecn",
    "ecn.kmin",
    "ecn.kmax",
    "ecn.pmax",
    "wred.min",
    "wred.max",
    "wred.prob",
];

impl Management {
    /// Gives marking or early drop of a queue another threshold or share, on all ports, or ends marking (`ecn`, `off`).
    ///
    /// # Errors
    /// What is wrong with it; nothing has changed then.
    pub fn set_threshold(&self, priority: u8, key: &str, value: &str) -> Result<(), String> {
        let mut live = self.live().map_err(|torn| torn.to_string())?;
        let now = &mut live.running.now;
        let mut new = now.config.clone();
        for port in &mut new.ports {
            let plan = port.qos.priorities.get_mut(usize::from(priority));
            let plan =
                plan.ok_or_else(|| format!("there is no priority {priority}: write 0 to 7"))?;
            change(plan, key, value)?;
        }
        in_order(&new, priority)?;
        self.requeue(&now.config, &new)
            .map_err(|deaf| deaf.to_string())?;
        now.config = new;
        now.overrides
            .insert(format!("qos.priorities.{priority}.{key}"));
        Ok(())
    }
}

fn change(plan: &mut PriorityPlan, key: &str, value: &str) -> Result<(), String> {
    fn read<T: std::str::FromStr>(value: &str, what: &str) -> Result<T, String> {
        value
            .parse()
            .map_err(|_| format!("`{value}` is not {what}"))
    }
    let depth = || {
        read(
            value,
            "a depth: write a size such as 200KB, or a time such as 60us",
        )
    };
    let share = || read(value, "a share: write 0% to 100%");
    if key == "ecn" {
        if value != "off" {
            return Err(format!(
                "`{value}` is not off: set ecn.kmin, ecn.kmax or ecn.pmax"
            ));
        }
        plan.ecn = None;
        return Ok(());
    }
    if key.starts_with("wred.") {
        if plan.lossless {
            return Err("the queue is lossless: nothing of it is dropped early".to_owned());
        }
        let wred: &mut Wred = plan.wred.get_or_insert_default();
        match key {
            "wred.min" => wred.min = depth()?,
            "wred.max" => wred.max = depth()?,
            "wred.prob" => wred.prob = share()?,
            _ => return Err(unknown(key)),
        }
        return Ok(());
    }
    let ecn: &mut Ecn = plan.ecn.get_or_insert_default();
    match key {
        "ecn.kmin" => ecn.kmin = depth()?,
        "ecn.kmax" => ecn.kmax = depth()?,
        "ecn.pmax" => ecn.pmax = share()?,
        _ => return Err(unknown(key)),
    }
    Ok(())
}

fn unknown(key: &str) -> String {
    format!("`{key}` is none of {}", KEYS.join(", "))
}

/// Thresholds in order on every port, and marking before pause.
fn in_order(config: &Config, priority: u8) -> Result<(), String> {
    let least_xoff = Lossless::of(config).least_xoff;
    for port in &config.ports {
        let Some(plan) = port.qos.priorities.get(usize::from(priority)) else {
            continue;
        };
        let speed = port
            .speed
            .unwrap_or_else(|| link_speed(Some(&port.device), (port.link_speed, None)).0);
        let drain = plan.drain(Some(speed)).unwrap_or(speed);
        let name = &port.name;
        for (what, low, high) in [
            plan.ecn.map(|ecn| ("kmin above kmax", ecn.kmin, ecn.kmax)),
            plan.wred.map(|wred| ("min above max", wred.min, wred.max)),
        ]
        .into_iter()
        .flatten()
        {
            let bytes = [low, high].map(|depth| depth.bytes_floored(drain, port.mtu));
            if bytes[0] > bytes[1] {
                return Err(format!(
                    "{what} on {name}: {} and {} bytes",
                    bytes[0], bytes[1]
                ));
            }
            if what.starts_with("kmin")
                && plan.lossless
                && port.speed.is_some()
                && bytes[1] > least_xoff
            {
                return Err(format!(
                    "kmax comes to {} bytes on {name}, above the least XOFF of {least_xoff}: senders would be paused before they are marked",
                    bytes[1]
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let text = "version: 1
ports:
  - { name: dc0, device: net_null0, speed: 10G, mtu: 1500, pfc: send }
qos: { priorities: { 0: { wred: { min: 30KB, max: 150KB } }, 3: { ecn: { kmin: 20KB, kmax: 100KB } } } }
buffer: { pool: 2MB }
";
        npcc_config::parse("t.yaml", text).unwrap().config
    }

    fn tried(priority: u8, key: &str, value: &str) -> Result<PriorityPlan, String> {
        let mut config = config();
        for port in &mut config.ports {
            change(&mut port.qos.priorities[usize::from(priority)], key, value)?;
        }
        in_order(&config, priority)?;
        Ok(config.ports[0].qos.priorities[usize::from(priority)])
    }

    #[test]
    fn thresholds_change_one_at_a_time() {
        let ecn = tried(3, "ecn.kmin", "40KB").unwrap().ecn.unwrap();
        assert_eq!(
            (ecn.kmin.to_string(), ecn.kmax.to_string()),
            ("40KB".to_owned(), "100KB".to_owned())
        );
        assert!(tried(3, "ecn", "off").unwrap().ecn.is_none());
        assert!(tried(0, "wred.prob", "50%").is_ok());
    }

    #[test]
    fn what_a_file_may_not_say_is_refused() {
        for (priority, key, value, word) in [
            (3, "ecn.kmin", "200KB", "kmin above kmax"),
            (3, "ecn.kmax", "1900KB", "least XOFF"),
            (3, "ecn.kmax", "many", "not a depth"),
            (3, "ecn.pmax", "200KB", "not a share"),
            (3, "ecn", "on", "not off"),
            (3, "wred.min", "10KB", "lossless"),
            (0, "wred.max", "10KB", "min above max"),
            (0, "wred.least", "10KB", "none of"),
        ] {
            let error = tried(priority, key, value).unwrap_err();
            assert!(error.contains(word), "{key} {value}: {error}");
        }
    }
}
