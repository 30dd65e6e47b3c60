//! OpenAPI document of the HTTP interface, from [`OPERATIONS`].

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operations::{Content, Input, OPERATIONS, Operation, Right};
use super::protocol::Problem;

/// Path of the schemas in the document.
const COMPONENTS: &str = "/components/schemas";

/// Returns the document, in version 3.1.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.definitions_path = COMPONENTS.into());
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for one in OPERATIONS {
        let path = paths.entry(one.path).or_insert_with(|| json!({}));
        path[one.method.name().to_ascii_lowercase()] = operation(one, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "npcc-switch",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "HTTP over the management sockets telemetry.socket and telemetry.read_only_socket.",
        },
        "servers": [{ "url": "http://localhost", "description": "curl --unix-socket /run/npcc-switch.sock http://localhost/ready" }],
        "paths": paths,
        "components": { "schemas": schemas.take_definitions(true) },
    })
}

fn operation(one: &Operation, schemas: &mut SchemaGenerator) -> Value {
    let (status, said) = match one.content {
        Content::Empty => ("204", "It was done."),
        Content::Lines(_) => ("200", "Values, each in a line of its own."),
        Content::Json(_) | Content::Yaml => ("200", "The answer."),
    };
    let mut answer = json!({ "description": said });
    if let Some(media) = one.content.media_type() {
        let schema = match one.content {
            Content::Json(schema) | Content::Lines(schema) => schema(schemas).to_value(),
            Content::Empty | Content::Yaml => json!({ "type": "string" }),
        };
        answer["content"] = json!({ media: { "schema": schema } });
    }
    let problem = schemas.subschema_for::<Problem>().to_value();
    let mut all = json!({
        "operationId": format!("{}-{}", one.method.name().to_ascii_lowercase(), one.name),
        "summary": one.about,
        "description": who(one.right),
        "x-right": one.right.name(),
        "responses": {
            status: answer,
            "default": { "description": "It was not done.", "content": { "application/json": { "schema": problem } } },
        },
    });
    match one.input {
        Input::None => {}
        Input::Query => all["parameters"] = parameters(one.input_schema()),
        Input::Body => {
            let schema = one.input_schema();
            all["requestBody"] = json!({ "required": one.needs_input(), "content": { "application/json": { "schema": schema } } });
        }
    }
    all
}

const fn who(right: Right) -> &'static str {
    match right {
        Right::Read => "Both sockets answer.",
        Right::Report => {
            "telemetry.socket answers, and telemetry.read_only_socket a process of the group npcc-feed."
        }
        Right::Change => "telemetry.socket answers.",
    }
}

/// Returns the parameters that an input of these properties has.
fn parameters(input: &Value) -> Value {
    let is_required = |name: &str| {
        let required = input["required"].as_array();
        required.is_some_and(|all| all.iter().any(|one| one == name))
    };
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let about = schema
            .as_object_mut()
            .and_then(|all| all.remove("description"));
        json!({ "name": name, "in": "query", "required": is_required(name), "description": about, "schema": schema })
    };
    let properties = input["properties"].as_object().into_iter().flatten();
    properties.map(parameter).collect()
}
