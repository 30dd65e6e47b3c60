//! Subscriptions of a feed: its peers' ends, and what hosts report.

use async_nats::SubscribeError;
use tokio::sync::mpsc;

use crate::agent::LeaseMessage;
use crate::bus::Link;
use crate::name::Name;
use crate::settings::Settings;

/// Passes each message about a peer's ends to `to`, with the peer's name.
pub(super) async fn to_peers(
    settings: &Settings,
    link: &Link,
    to: &mpsc::Sender<(Name, Vec<u8>)>,
) -> Result<(), SubscribeError> {
    for peer in &settings.peers {
        let subject = format!("npcc.{}.{peer}.ends.>", settings.site);
        let (from, own) = (peer.clone(), settings.name.clone());
        let read = move |subject: &str, bytes: &[u8]| {
            is_for(subject, own.as_str()).then(|| (from.clone(), bytes.to_vec()))
        };
        link.subscribe(subject, to.clone(), read).await?;
    }
    Ok(())
}

/// Passes the leases of all hosts of the site to `to`, where the settings want them.
pub(super) async fn to_hosts(
    settings: &Settings,
    link: &Link,
    to: mpsc::Sender<LeaseMessage>,
) -> Result<(), SubscribeError> {
    if !settings.leases {
        return Ok(());
    }
    let subject = format!("npcc.{}.host.*.leases", settings.site);
    link.subscribe(subject, to, |subject, bytes| {
        let from = subject.split('.').nth(3)?.parse().ok()?;
        LeaseMessage::decode(bytes, &from)
    })
    .await
}

/// Returns true if a subject `npcc.SITE.BOX.ends.TOPIC` or `npcc.SITE.BOX.ends.TOPIC.NAME` is for all or for `own`.
fn is_for(subject: &str, own: &str) -> bool {
    subject.split('.').nth(5).is_none_or(|name| name == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_for_another_box_is_left_alone() {
        assert!(is_for("npcc.s.a.ends.delta", "b"));
        assert!(is_for("npcc.s.a.ends.snapshot.b", "b"));
        assert!(!is_for("npcc.s.a.ends.snapshot.c", "b"));
    }
}
