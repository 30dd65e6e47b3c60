//! `npcc-switch set npcc.PORT.PRIORITY.WHAT VALUE`: whether a queue's CNPs leave, its policy, or a parameter of it; and
//! `set npcc.action VALUE`.

use npcc_config::model::Action;
use npcc_config::units::Nanos;

use npcc_appliance::control::order::NpccOrder;
use npcc_appliance::manage::protocol::Request;
use npcc_appliance::manage::thresholds::KEYS;

/// The order a key and a value mean; `None` when the key is not one of NPCC's.
pub(super) fn npcc(key: &str, value: &str) -> Option<Result<NpccOrder, String>> {
    let rest = key.strip_prefix("npcc.")?;
    if rest == "action" {
        return Some(action(value).map(|action| NpccOrder::Action { action }));
    }
    let mut parts = rest.rsplitn(3, '.');
    let (Some(what), Some(priority), Some(port)) = (parts.next(), parts.next(), parts.next())
    else {
        return Some(Err(wrong_key(key)));
    };
    let Some(priority) = priority.parse().ok().filter(|priority| *priority < 8u8) else {
        return Some(Err(wrong_key(key)));
    };
    if what == "policy" {
        return Some(Ok(NpccOrder::Policy {
            port: port.to_owned(),
            priority,
            name: value.to_owned(),
        }));
    }
    if what == "action" {
        return Some(action(value).map(|action| NpccOrder::QueueAction {
            port: port.to_owned(),
            priority,
            action,
        }));
    }
    let time = || value.parse::<Nanos>().ok().map(|time| time.0);
    let Some(number) = value.parse().ok().or_else(time) else {
        return Some(Err(format!(
            "error: `{value}` is neither a number nor a time such as 300us"
        )));
    };
    Some(Ok(NpccOrder::Parameter {
        port: port.to_owned(),
        priority,
        name: what.to_owned(),
        value: number,
    }))
}

fn action(value: &str) -> Result<Action, String> {
    Action::named(value).ok_or_else(|| {
        let names = Action::ALL.map(Action::name).join(", ");
        format!("error: `{value}` is none of {names}")
    })
}

/// A change of marking or early drop; `None` when the key is none of those.
pub(super) fn threshold(key: &str, value: &str) -> Option<Request> {
    let rest = key.strip_prefix("qos.priorities.")?;
    let (priority, what) = rest.split_once('.')?;
    let priority = priority.parse().ok().filter(|priority| *priority < 8u8)?;
    KEYS.contains(&what).then(|| Request::Threshold {
        priority,
        key: what.to_owned(),
        value: value.to_owned(),
    })
}

fn wrong_key(key: &str) -> String {
    format!(
        "error: `{key}` names nothing: write npcc.action, npcc.PORT.PRIORITY.action, npcc.PORT.PRIORITY.policy, or a parameter's name"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_a_queue_and_what_of_it() {
        let parameter = |value| NpccOrder::Parameter {
            port: "wan0.100".to_owned(),
            priority: 3,
            name: "recovery".to_owned(),
            value,
        };
        assert_eq!(
            npcc("npcc.wan0.100.3.recovery", "500us"),
            Some(Ok(parameter(500_000)))
        );
        assert_eq!(
            npcc("npcc.wan0.100.3.recovery", "7"),
            Some(Ok(parameter(7)))
        );
        assert!(matches!(
            npcc("npcc.wan0.3.policy", "model"),
            Some(Ok(NpccOrder::Policy { .. }))
        ));
        assert!(matches!(npcc("npcc.wan0.9.policy", "pi"), Some(Err(_))));
        assert!(matches!(npcc("npcc.policy", "pi"), Some(Err(_))));
        assert_eq!(npcc("qos.priorities.3.weight", "5"), None);
        assert!(matches!(
            threshold("qos.priorities.3.ecn.kmin", "40KB"),
            Some(Request::Threshold { priority: 3, .. })
        ));
        assert_eq!(threshold("qos.priorities.8.ecn.kmin", "40KB"), None);
        assert_eq!(threshold("qos.priorities.3.weight", "5"), None);
    }
}
