//! Operations of the HTTP interface: one table of method, path, right, input and answer. The router of the switch, the client and the OpenAPI
//! document are made from it and from the declarations of [`Request`] and of the answers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::audit::Changes;
use super::capture::CaptureLine;
use super::dcbx::Dcbx;
use super::ends::EndRow;
use super::lossless::BufferTable;
use super::model::{Flow, Host, LogLine, Npcc, Port, Snapshot, Versioned, Worker};
use super::outcome::Outcome;
use super::peers::{PeerTable, Suggested};
use super::protocol::Request;
use super::punt::Punt;
use super::qos::Qos;
use super::ready::Ready;
use super::routes::{Linux, Neighbor, Route};
use super::rows::RowLine;

npcc_pipeline::named! {
    /// Method of HTTP.
    pub enum Method {
        /// Reads.
        Get = "GET",
        /// Changes, or starts something.
        Post = "POST",
        /// Changes a part.
        Patch = "PATCH",
        /// Takes something away.
        Delete = "DELETE",
    }
}

npcc_pipeline::named! {
    /// Right that an operation needs.
    pub enum Right {
        /// Either socket.
        Read = "read",
        /// The socket that may change what runs, or the group of the feed on the other.
        Report = "report",
        /// The socket that may change what runs.
        Change = "change",
    }
}

/// Place of the input in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// There is none.
    None,
    /// Parameters behind the path.
    Query,
    /// Body, as JSON.
    Body,
}

/// Request that an operation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makes {
    /// The request of the operation's name.
    Named,
    /// [`Request::Show`] for the table of the operation's name.
    Table,
    /// [`Request::Rows`] for the table of the operation's name.
    Rows,
}

/// Content of an answer.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// No content.
    Empty,
    /// One value, as JSON.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Values, as JSON, each in a line of its own.
    Lines(fn(&mut SchemaGenerator) -> Schema),
    /// A configuration.
    Yaml,
}

impl Content {
    /// Returns the media type; `None` without content.
    #[must_use]
    pub const fn media_type(self) -> Option<&'static str> {
        match self {
            Content::Empty => None,
            Content::Json(_) => Some("application/json"),
            Content::Lines(_) => Some("application/jsonl"),
            Content::Yaml => Some("application/yaml"),
        }
    }
}

/// Operation: a method of a path.
#[derive(Debug)]
pub struct Operation {
    /// Name of the operation, which is that of its request or of its table.
    pub name: &'static str,
    /// Method of the request.
    pub method: Method,
    /// Path of the request.
    pub path: &'static str,
    /// Description.
    pub about: &'static str,
    /// Right that it needs.
    pub right: Right,
    /// Place of its input.
    pub input: Input,
    /// Request that it makes.
    pub makes: Makes,
    /// Content of its answer.
    pub content: Content,
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Declares an operation.
macro_rules! operation {
    ($name:literal: $Method:ident $path:literal, $Right:ident, $Input:ident -> $content:expr, $about:literal) => {
        Operation {
            name: $name,
            method: Method::$Method,
            path: $path,
            about: $about,
            right: Right::$Right,
            input: Input::$Input,
            makes: Makes::Named,
            content: $content,
        }
    };
}

/// Declares a table of `show`: whole, or row by row.
macro_rules! table {
    ($name:literal: $Makes:ident $Input:ident -> $content:expr, $about:literal) => {
        Operation {
            name: $name,
            method: Method::Get,
            path: concat!("/v1/", $name),
            about: $about,
            right: Right::Read,
            input: Input::$Input,
            makes: Makes::$Makes,
            content: $content,
        }
    };
}

/// All operations; one line declares one.
#[rustfmt::skip]
pub static OPERATIONS: &[Operation] = &[
    operation!("ready": Get "/ready", Read, None -> Content::Json(of::<Ready>), "Status 200 once the switch forwards, 503 before"),
    operation!("snapshot": Get "/v1/snapshot", Read, None -> Content::Json(of::<Snapshot>), "State of the whole switch but flows, as `run --stats-json` writes it"),
    table!("ports": Table None -> Content::Json(of::<Vec<Port>>), "Traffic, drops and link of each port"),
    operation!("port": Patch "/v1/ports", Change, Body -> Content::Empty, "Take a port up or down"),
    table!("workers": Table None -> Content::Json(of::<Vec<Worker>>), "Which worker has which ports, and what crosses between them"),
    table!("queues": Table None -> Content::Json(of::<Vec<Port>>), "Depth, peak, drops and marks of each egress queue"),
    table!("flows": Rows Query -> Content::Lines(of::<RowLine<Flow>>), "RoCEv2 flows: QPNs, evidence, bytes, CNPs"),
    table!("hosts": Rows Query -> Content::Lines(of::<RowLine<Host>>), "By host: what becomes of its CNPs, what they did, NAKs and CE"),
    table!("log": Rows Query -> Content::Lines(of::<RowLine<LogLine>>), "The latest CNPs and why each was sent, refusals, events and changes"),
    table!("audit": Table None -> Content::Json(of::<Changes>), "Who changed what, and a reload that waits for its commit"),
    table!("pfc": Table None -> Content::Json(of::<Vec<Port>>), "Pause sent and obeyed, backends, storms"),
    table!("buffer": Table None -> Content::Json(of::<Versioned<BufferTable>>), "The shared buffer: groups, headroom, watermarks"),
    table!("punt": Table None -> Content::Json(of::<Versioned<Punt>>), "What Linux was given by class, ICMP errors, and what it sent"),
    table!("linux": Table None -> Content::Json(of::<Linux>), "How the kernel's routes are followed: prefixes, messages, comparisons"),
    table!("routes": Rows Query -> Content::Lines(of::<RowLine<Route>>), "Routes and their next hops; --diff: against the kernel's, now"),
    table!("neighbors": Rows Query -> Content::Lines(of::<RowLine<Neighbor>>), "Neighbours of the kernel behind our ports, and their MAC addresses"),
    table!("qos": Table None -> Content::Json(of::<Versioned<Qos>>), "Effective queues, maps and headroom"),
    table!("dcbx": Table None -> Content::Json(of::<Versioned<Dcbx>>), "PFC and RoCE's priority as commands for lldpcli, which announces them to hosts"),
    table!("peers": Table None -> Content::Json(of::<PeerTable>), "Boxes and hosts' agents that report ends: what they hold, what was refused, what came of it"),
    operation!("trust": Patch "/v1/peers", Change, Body -> Content::Empty, "Forget all that a peer said and believe nothing of it, or believe it again"),
    table!("npcc": Table None -> Content::Json(of::<Versioned<Npcc>>), "Watched queues: zone, trend, decisions, CNPs, reaction time"),
    operation!("ends": Get "/v1/ends", Read, Query -> Content::Lines(of::<EndRow>), "Reverse traffic that the switch saw: a snapshot, or also what changes after it"),
    operation!("suggest": Post "/v1/ends", Report, Body -> Content::Json(of::<Vec<Suggested>>), "Report ends that other boxes or hosts saw, which packets must confirm; an outcome for each peer"),
    operation!("config": Get "/v1/config", Read, Query -> Content::Yaml, "The running configuration, or how it differs from the file"),
    operation!("set": Patch "/v1/config", Change, Body -> Content::Json(of::<Outcome>), "Set a value of the running configuration"),
    operation!("unset": Delete "/v1/config", Change, Query -> Content::Json(of::<Outcome>), "Reset a key, or all that was set, to the file's values"),
    operation!("plan-reload": Get "/v1/config/reload", Read, None -> Content::Json(of::<Outcome>), "What a reload would do"),
    operation!("reload": Post "/v1/config/reload", Change, Body -> Content::Json(of::<Outcome>), "Read the configuration file again"),
    operation!("commit": Post "/v1/config/commit", Change, None -> Content::Empty, "Confirm the pending reload"),
    operation!("rollback": Post "/v1/config/rollback", Change, None -> Content::Json(of::<Outcome>), "Restore the settings before the pending reload"),
    operation!("clear-counters": Delete "/v1/counters", Change, Query -> Content::Empty, "Show counters relative to now, to the user who asks"),
    operation!("clear-watermarks": Delete "/v1/watermarks", Change, None -> Content::Empty, "Show watermarks from here on"),
    operation!("capture": Get "/v1/capture", Change, Query -> Content::Lines(of::<CaptureLine>), "Capture frames until the client goes away"),
    operation!("end-capture": Delete "/v1/capture", Change, Query -> Content::Empty, "End a capture: its client gets the frames that are left, and the totals"),
    operation!("add-pair": Post "/v1/pair", Change, Body -> Content::Empty, "Add a pair: these queue pairs are one connection"),
    operation!("delete-pair": Delete "/v1/pair", Change, Query -> Content::Empty, "Delete the pair of these packets"),
    operation!("send-cnps": Post "/v1/cnps", Change, Body -> Content::Empty, "Send CNPs to a queue pair, whatever NPCC decides"),
    operation!("drain": Post "/v1/drain", Change, Body -> Content::Empty, "Mark the traffic as being drained, or no longer"),
    operation!("stop": Post "/v1/stop", Change, None -> Content::Empty, "Stop the switch, as at SIGTERM"),
];

/// Returns the table of `show` of this name.
#[must_use]
pub fn table(name: &str) -> Option<&'static Operation> {
    OPERATIONS
        .iter()
        .find(|one| one.makes != Makes::Named && one.name == name)
}

/// Schemas of the inputs, by the name of the operation, from the declaration of [`Request`].
static INPUTS: LazyLock<BTreeMap<&'static str, Value>> = LazyLock::new(|| {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let requests = settings.into_generator().into_root_schema_for::<Request>();
    let requests = requests.to_value();
    let variants = requests["oneOf"].as_array().cloned().unwrap_or_default();
    let of = |tag: &str| {
        let all = variants.iter();
        let mut found = all.filter_map(|variant| variant["properties"].get(tag));
        found.next().cloned()
    };
    let inputs = OPERATIONS.iter().filter(|one| one.input != Input::None);
    let schema = |one: &Operation| match one.makes {
        Makes::Rows => of("rows").map(|rows| rows["properties"]["query"].clone()),
        Makes::Named | Makes::Table => of(one.name),
    };
    inputs
        .filter_map(|one| Some((one.name, schema(one)?)))
        .collect()
});

impl Operation {
    /// Returns the schema of the input; null where there is none.
    #[must_use]
    pub fn input_schema(&self) -> &'static Value {
        INPUTS.get(self.name).unwrap_or(&Value::Null)
    }

    /// Returns true if a request must have the input.
    #[must_use]
    pub fn needs_input(&self) -> bool {
        let schema = self.input_schema();
        schema["type"] == "array"
            || schema["required"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
    }

    /// Makes the request of an input.
    ///
    /// # Errors
    /// Says what is wrong with the input.
    pub fn request(&self, input: Value) -> Result<Request, String> {
        self.check_names(&input)?;
        let request = match (self.makes, self.input) {
            (Makes::Table, _) => json!({ "show": { "table": self.name } }),
            (Makes::Rows, _) => json!({ "rows": { "table": self.name, "query": input } }),
            (Makes::Named, Input::None) => Value::from(self.name),
            (Makes::Named, _) => json!({ self.name: input }),
        };
        serde_json::from_value(request).map_err(|error| error.to_string())
    }

    /// Refuses names that the input does not have: a misspelt one would have no effect.
    fn check_names(&self, input: &Value) -> Result<(), String> {
        let Some(known) = self.input_schema()["properties"].as_object() else {
            return Ok(());
        };
        let mut given = input.as_object().into_iter().flat_map(Map::keys);
        given
            .find(|name| !known.contains_key(*name))
            .map_or(Ok(()), |name| {
                let known: Vec<&str> = known.keys().map(String::as_str).collect();
                Err(format!("there is no `{name}`: write {}", known.join(", ")))
            })
    }

    /// Reads the parameters behind the path.
    ///
    /// # Errors
    /// Says which parameter is given twice.
    pub fn parameters(&self, query: &str) -> Result<Value, String> {
        let properties = &self.input_schema()["properties"];
        let mut all = Map::new();
        for (name, text) in form_urlencoded::parse(query.as_bytes()) {
            let kind = &properties[name.as_ref()]["type"];
            let is = |word: &str| {
                kind == word
                    || kind
                        .as_array()
                        .is_some_and(|all| all.contains(&word.into()))
            };
            // A text that is no number stays one, and is refused as such.
            let value = match (is("integer") || is("boolean")).then(|| serde_json::from_str(&text))
            {
                Some(Ok(value)) => value,
                _ => Value::from(text.as_ref()),
            };
            if all.insert(name.to_string(), value).is_some() {
                return Err(format!("`{name}` is given twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

/// Request as it goes over the wire.
#[derive(Debug)]
pub struct Call {
    /// The operation.
    pub operation: &'static Operation,
    /// Path, with the parameters behind it.
    pub target: String,
    /// Body.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// Returns the operation of the request and its input.
    fn parts(&self) -> Option<(&'static Operation, Value)> {
        let (tag, input) = match serde_json::to_value(self).ok()? {
            Value::Object(one) => one.into_iter().next()?,
            Value::String(tag) => (tag, Value::Null),
            _ => return None,
        };
        Some(match self {
            Request::Show { table: name } => (table(name)?, Value::Null),
            Request::Rows { table: name, .. } => (table(name)?, input["query"].clone()),
            _ => {
                let mut all = OPERATIONS.iter();
                (
                    all.find(|one| one.makes == Makes::Named && one.name == tag)?,
                    input,
                )
            }
        })
    }

    /// Returns the operation of the request; `None` for a table that does not exist.
    #[must_use]
    pub fn operation(&self) -> Option<&'static Operation> {
        self.parts().map(|(operation, _)| operation)
    }

    /// Returns the request as it goes over the wire; `None` for a table that does not exist.
    #[must_use]
    pub fn call(&self) -> Option<Call> {
        let (operation, input) = self.parts()?;
        let mut target = operation.path.to_owned();
        let mut body = None;
        match operation.input {
            Input::None => {}
            Input::Query => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                for (name, value) in input.as_object().into_iter().flatten() {
                    match value {
                        Value::Null | Value::Bool(false) => {}
                        Value::String(text) => _ = query.append_pair(name, text),
                        other => _ = query.append_pair(name, &other.to_string()),
                    }
                }
                let query = query.finish();
                if !query.is_empty() {
                    target = format!("{target}?{query}");
                }
            }
            Input::Body => body = serde_json::to_vec(&input).ok(),
        }
        Some(Call {
            operation,
            target,
            body,
        })
    }
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
