//! Routes of the HTTP service by path. All of it is read-only, and the page loads nothing from elsewhere.
//!
//! | path | what |
//! |---|---|
//! | `/` | a page for people, with its style and script beside it |
//! | `/metrics` | [`super::metrics`] |
//! | `/ready` | status 200 once the switch forwards, 503 before |
//! | `/api/snapshot` | everything but flows, as `--stats-json` has it |
//! | `/api/NAME` | what `show NAME --json` prints: of flows and hosts the first [`ROWS`], of the log the latest [`LINES`] |

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::get;
use hyper::body::Bytes;
use npcc_api::query::Query;

use super::cache::Cache;
use super::hosts;
use super::metrics::{self, Format, Scrape};
use crate::manage::management::Management;
use crate::manage::tables::{self, Entry};

/// Largest number of flows and of hosts in an answer.
const ROWS: usize = 50;
/// Number of lines of the log in an answer.
const LINES: usize = 100;

/// Content security policy: scripts and styles are the page's own, and nothing comes from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const INDEX: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/app.js");
const CHART: &str = include_str!("page/chart.js");

/// Request whose answer is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PageRequest {
    Metrics(Format),
    Snapshot,
    Table(&'static str),
}

/// State behind the pages: the management interface and the cached answers.
#[derive(Debug)]
struct Pages {
    management: Arc<Management>,
    reported: Mutex<Cache<PageRequest>>,
}

impl Pages {
    /// Returns the answer to `requested`, from the cache or made now.
    fn tell(&self, requested: PageRequest) -> anyhow::Result<Bytes> {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let view = &self.management.view;
        reported.get(requested, || match requested {
            PageRequest::Metrics(format) => Ok(metrics::text(Scrape::of(view), format)?),
            PageRequest::Snapshot => Ok(serde_json::to_string(&view.snapshot())?),
            PageRequest::Table(name) => {
                let query = Query {
                    top: match name {
                        "log" => Some(LINES),
                        _ => Some(ROWS),
                    },
                    ..Query::default()
                };
                let table = tables::named(name);
                table.map_or_else(|| Ok(String::new()), |table| table.json(view, &query))
            }
        })
    }
}

/// Returns the router of all pages, for requests to an address or to one of these names.
pub fn router(management: Arc<Management>, names: &[String]) -> Router {
    let pages = Pages {
        management,
        reported: Mutex::default(),
    };
    let router = Router::new()
        .route("/", get(async || asset("text/html; charset=utf-8", INDEX)))
        .route(
            "/style.css",
            get(async || asset("text/css; charset=utf-8", STYLE)),
        )
        .route(
            "/app.js",
            get(async || asset("text/javascript; charset=utf-8", SCRIPT)),
        )
        .route(
            "/chart.js",
            get(async || asset("text/javascript; charset=utf-8", CHART)),
        )
        .route("/ready", get(of_ready))
        .route("/metrics", get(of_metrics))
        .route("/api/snapshot", get(of_snapshot))
        .route("/api/{table}", get(of_table))
        .fallback(async || {
            plain(
                StatusCode::NOT_FOUND,
                "there are /, /metrics, /ready and /api/snapshot here\n",
            )
        })
        .with_state(Arc::new(pages));
    hosts::guarded(router, names)
}

async fn of_metrics(State(pages): State<Arc<Pages>>, headers: HeaderMap) -> Response<Body> {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    let format = Format::accepted(accept);
    answer(
        format.content_type(),
        pages.tell(PageRequest::Metrics(format)),
    )
}

async fn of_ready(State(pages): State<Arc<Pages>>) -> Response<Body> {
    match pages.management.view.forwarding() {
        Some(ready) => answer("application/json", json(&ready)),
        None => plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "the switch does not forward yet\n",
        ),
    }
}

fn json(data: &impl serde::Serialize) -> anyhow::Result<Bytes> {
    Ok(Bytes::from(serde_json::to_vec(data)?))
}

async fn of_snapshot(State(pages): State<Arc<Pages>>) -> Response<Body> {
    answer("application/json", pages.tell(PageRequest::Snapshot))
}

async fn of_table(State(pages): State<Arc<Pages>>, Path(name): Path<String>) -> Response<Body> {
    let Some(Entry { name, .. }) = tables::named(&name) else {
        return plain(
            StatusCode::NOT_FOUND,
            "there is no such table: see npcc-switch show --help\n",
        );
    };
    answer("application/json", pages.tell(PageRequest::Table(name)))
}

fn asset(kind: &'static str, text: &'static str) -> Response<Body> {
    respond(StatusCode::OK, kind, Body::from(text))
}

fn plain(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    respond(status, "text/plain; charset=utf-8", Body::from(text.into()))
}

fn answer(kind: &'static str, made: anyhow::Result<Bytes>) -> Response<Body> {
    match made {
        Ok(bytes) => respond(StatusCode::OK, kind, Body::from(bytes)),
        Err(why) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{why:#}\n")),
    }
}

fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::CONTENT_SECURITY_POLICY, POLICY)
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::REFERRER_POLICY, "no-referrer");
    // The headers are constants and valid, so this cannot fail.
    response.body(body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_nothing_from_elsewhere() {
        for text in [INDEX, STYLE, SCRIPT, CHART] {
            let own = text.replace("http://www.w3.org/2000/svg", "");
            for foreign in [
                "http:",
                "https:",
                "//cdn",
                "url(",
                "@import",
                "innerHTML",
                "eval(",
            ] {
                assert!(!own.contains(foreign), "{foreign}");
            }
        }
    }

    #[test]
    fn what_the_page_loads_is_what_there_is() {
        for own in ["style.css", "app.js"] {
            assert!(INDEX.contains(&format!("\"{own}\"")), "{own}");
        }
        assert!(SCRIPT.contains("\"./chart.js\""));
    }
}
