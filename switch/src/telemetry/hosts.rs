//! Host names under which the switch answers over HTTP.
//!
//! Law: a request is answered only where its `Host`, and the authority of its target if it has one, is an address, `localhost` or a name
//! of the configuration. A page from elsewhere whose name is made to resolve to an address of ours (DNS rebinding) has its own name
//! there, so the browser that shows it can read nothing here.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

/// Body of the 403 answer to any other host name.
const REFUSED: &str = "this name is not answered: use an address or localhost, or add the name to telemetry.http_hosts\n";

/// Names of the configuration.
#[derive(Debug, Clone)]
struct Hosts(Arc<[String]>);

/// Has `router` answer requests for an address, for `localhost` or for one of these names, and refuse others.
pub(super) fn guarded(router: Router, names: &[String]) -> Router {
    let hosts = Hosts(names.into());
    router.layer(from_fn_with_state(hosts, guard))
}

async fn guard(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    if hosts.admit(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, REFUSED).into_response()
}

impl Hosts {
    /// Returns true if a request of this target with these headers is answered.
    fn admit(&self, target: &Uri, headers: &HeaderMap) -> bool {
        let mut all = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (all.next(), all.next()) else {
            return false;
        };
        let is_ours = |host: &str| name(host).is_some_and(|name| self.knows(name));
        let authority = target.authority();
        host.to_str().is_ok_and(is_ours) && authority.is_none_or(|it| is_ours(it.as_str()))
    }

    fn knows(&self, name: &str) -> bool {
        let bare = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_address = match bare {
            Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
            None => name.parse::<Ipv4Addr>().is_ok(),
        };
        let mut named = ["localhost"]
            .into_iter()
            .chain(self.0.iter().map(String::as_str));
        is_address || named.any(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// Returns the name in `name` or `name:port`, without the trailing dot of a fully qualified name; `None` if the port is no number.
fn name(host: &str) -> Option<&str> {
    let end = host.rfind(']').unwrap_or(0);
    let (name, port) = match host[end..].rfind(':') {
        Some(at) => (&host[..end + at], &host[end + at + 1..]),
        None => (host, ""),
    };
    let is_port = port.bytes().all(|digit| digit.is_ascii_digit());
    is_port.then(|| name.strip_suffix('.').unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn answers(target: &str, hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        let names = ["dci1", "dci1.example.net"].map(str::to_owned);
        Hosts(names.into()).admit(&target.parse().unwrap(), &headers)
    }

    #[test]
    fn addresses_localhost_and_names_of_the_file_are_answered() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9464",
            "10.0.0.1:80",
            "[::1]:9464",
            "[2001:db8::1]",
            "localhost",
            "LocalHost:9464",
            "dci1:9464",
            "DCI1.example.net.",
            "dci1:",
        ] {
            assert!(answers("/", &[host]), "{host}");
        }
        assert!(answers("http://dci1:9464/metrics", &["dci1:9464"]));
    }

    #[test]
    fn every_other_name_is_refused() {
        let long = "x".repeat(5_000);
        for host in [
            "evil.example",
            "evil.example:9464",
            "",
            ":9464",
            ".",
            &long,
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "evil.example:80@127.0.0.1",
            "localhost.evil.example",
            "evil.localhost",
            "evil.dci1",
            "dci1..",
            "::1",
            "[::1",
            "::1]",
            "[evil.example]",
            "[127.0.0.1]",
            "[::1]evil.example",
            "[::1].evil.example:80",
            "127.1",
            "2130706433",
            "127.0.0.1:9464:evil",
            "127.0.0.1, evil.example",
            "dci1 evil.example",
        ] {
            assert!(!answers("/", &[host]), "{host}");
        }
        assert!(!answers("/", &[]));
        assert!(!answers("/", &["localhost", "evil.example"]));
        assert!(!answers("/", &["localhost", "localhost"]));
        assert!(!answers("http://evil.example/", &["localhost"]));
    }
}
