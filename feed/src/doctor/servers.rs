//! Findings about servers: reachable, who this box is to them, what it may do, and whether messages go from one to the other.

use std::error::Error;
use std::io;
use std::time::Duration;

use async_nats::ConnectErrorKind;
use futures_util::StreamExt;

use super::finding::{Finding, Kind};
use super::peers;
use super::probe::Probe;
use crate::bus::ConnectFailure;
use crate::settings::Settings;
use crate::sync::LONGEST;

/// Time in which a message goes from one server to the other.
const ROUTE: Duration = Duration::from_secs(1);

/// Examines every server, then what needs a connection.
pub(super) async fn examine(settings: &Settings, found: &mut Vec<Finding>) {
    let mut probes = Vec::new();
    for server in &settings.bus.servers {
        match Probe::connect(settings, server).await {
            Ok(probe) => probes.push(probe),
            Err(failure) => found.push(refused(server, &failure)),
        }
    }
    for probe in &probes {
        longest(probe, found);
        permissions(settings, probe, found).await;
    }
    for pair in probes.windows(2) {
        if let [one, other] = pair {
            route(settings, one, other, found).await;
        }
    }
    history(&probes, found);
    if let Some(probe) = probes.first() {
        peers::examine(settings, probe, found).await;
    }
}

fn refused(server: &str, failure: &ConnectFailure) -> Finding {
    let kind = match failure {
        ConnectFailure::Server(error) => Some(error.kind()),
        ConnectFailure::Secret(_) | ConnectFailure::Credentials(_) => None,
    };
    let (kind, mend) = match kind {
        Some(ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication)
        | None => (
            Kind::Credentials,
            "compare bus.user and its password, key or credentials with the server's authorization",
        ),
        Some(kind) if kind == ConnectErrorKind::Tls || is_handshake(failure) => (
            Kind::Tls,
            "compare bus.tls.ca with the authority of the server's certificate, and the address with its names",
        ),
        Some(_) => (
            Kind::Unreachable,
            "start nats-server there, or open its port; one of two servers is enough to run",
        ),
    };
    Finding::new(kind, server, failure, mend)
}

/// Returns true if the connection was made and the handshake of TLS failed, which the client reports as an error of I/O.
fn is_handshake(failure: &ConnectFailure) -> bool {
    let first: &dyn Error = failure;
    let mut causes = std::iter::successors(Some(first), |cause| (*cause).source());
    causes.any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::InvalidData)
    })
}

/// Finds servers without JetStream.
fn history(probes: &[Probe], found: &mut Vec<Finding>) {
    let without: Vec<&str> = probes
        .iter()
        .filter(|probe| !probe.client.server_info().jetstream)
        .map(|probe| probe.server.as_str())
        .collect();
    if without.len() == probes.len() {
        let mend = "needed for `npcc-feed history` only: set up a server elsewhere (nats-history.conf), or three nodes (nats-three.conf)";
        let what = "no server keeps a history (JetStream is off)";
        found.push(Finding::new(Kind::NoHistory, "bus", what, mend));
        return;
    }
    // On two servers JetStream is of no use: they cannot agree once one is gone.
    if without.is_empty() || probes.len() < 3 {
        return;
    }
    let what = "JetStream is off here and on at another server: the history has fewer copies, and may be lost with one server";
    let mend = "add the jetstream block of nats-three.conf to this server's configuration";
    found.push(Finding::new(
        Kind::HistoryOnSome,
        without.join(", "),
        what,
        mend,
    ));
}

/// Finds a server that refuses messages as long as a feed sends.
fn longest(probe: &Probe, found: &mut Vec<Finding>) {
    let most = probe.client.server_info().max_payload;
    if most < LONGEST {
        let what = format!("it takes messages of {most} bytes, and a feed sends up to {LONGEST}");
        let mend = format!("set max_payload: {LONGEST} in its configuration");
        found.push(Finding::new(Kind::MaxPayload, &probe.server, what, mend));
    }
}

async fn permissions(settings: &Settings, probe: &Probe, found: &mut Vec<Finding>) {
    let own = settings.subject("doctor");
    if !probe.may_publish(&own).await {
        let what = format!("this box may not publish {own}");
        let mend = format!("allow its user to publish {}", settings.subject(">"));
        found.push(Finding::new(
            Kind::PermissionsTooNarrow,
            &probe.server,
            what,
            mend,
        ));
    }
    for peer in &settings.peers {
        let subject = format!("npcc.{}.{peer}.ends.>", settings.site);
        if !probe.may_subscribe(&subject).await {
            let what = format!("this box may not read {subject}");
            let mend = format!("allow its user to subscribe to npcc.{}.>", settings.site);
            found.push(Finding::new(
                Kind::PermissionsTooNarrow,
                &probe.server,
                what,
                mend,
            ));
        }
    }
    let other = format!("npcc.{}.doctor-of-another-box.doctor", settings.site);
    if probe.may_publish(&other).await {
        let what = "this box's user may publish as any other box: anyone who holds its secret can forge their ends";
        let mend = format!("allow its user to publish {} only", settings.subject(">"));
        found.push(Finding::new(
            Kind::PermissionsTooWide,
            &probe.server,
            what,
            mend,
        ));
    }
}

/// Sends a message from one server to the other.
async fn route(settings: &Settings, one: &Probe, other: &Probe, found: &mut Vec<Finding>) {
    let subject = settings.subject("doctor");
    let arrived = async {
        let mut messages = other.client.subscribe(subject.clone()).await.ok()?;
        other.client.flush().await.ok()?;
        // The other server learns of the subscription a moment later.
        tokio::time::sleep(ROUTE / 4).await;
        one.client
            .publish(subject.clone(), "probe".into())
            .await
            .ok()?;
        one.client.flush().await.ok()?;
        messages.next().await
    };
    if !matches!(tokio::time::timeout(ROUTE, arrived).await, Ok(Some(_))) {
        let place = format!("{} and {}", one.server, other.server);
        let what = "messages do not go from one to the other";
        let mend = "give both the same cluster name and a route to the other (cluster.routes), and open the cluster's port";
        found.push(Finding::new(Kind::NoRoute, place, what, mend));
    }
}
