//! What the server offers, as OpenAPI 3.1. The shapes come from the very types that are read and written; only the list
//! of operations is kept here, beside the list of routes.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use toolgate_contract::{Call, Reply, schemars};

use crate::routes::shapes;

/// One operation: what it takes and what it answers.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    query: Option<Schema>,
    body: Option<Schema>,
    /// The status when it works, and the shape that comes with it.
    answers: Vec<(u16, Option<Schema>)>,
    /// What comes when it fails; every operation can fail at the door.
    fails: &'static [u16],
}

/// The whole description.
pub(crate) fn document() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations(&mut generator) {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        entry[operation.method] = described(&operation);
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Problem".into(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Toolgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The gate between a language model and a machine. A call that reached the gate is answered with \
                            status 200 and its reply, whose `ok` tells how it ended; other statuses come with a `Problem`.",
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "The owner's token, or a session's. Only in this header, never in an address.",
            } },
            "schemas": schemas,
        },
    })
}

/// Every operation, in the order of the routes.
fn operations(generator: &mut SchemaGenerator) -> Vec<Operation> {
    let mut table = Table { generator, operations: Vec::new() };
    of_the_server(&mut table);
    of_calls_and_runs(&mut table);
    of_approvals_and_output(&mut table);
    table.operations
}

fn of_the_server(table: &mut Table<'_>) {
    table.get("/health", "Say that the server is there. Needs no token.", 200, open_object());
    table.get(
        "/metrics",
        "Numbers for Prometheus. Only for the owner.",
        200,
        Schema::try_from(json!({ "type": "string" })).ok(),
    );
    table.get("/openapi.json", "This description.", 200, open_object());
    table.get("/v1/tools", "The tools that the session may use.", 200, open_object());
    table.get("/v1/sessions", "All sessions. Only for the owner.", 200, None).answer_as::<shapes::Sessions>();
    table
        .add(
            "post",
            "/v1/sessions",
            "Begin a session with a run, grants, tools and a token of its own. Only for the owner.",
            201,
        )
        .takes::<shapes::NewSession>()
        .answer_as::<shapes::SessionView>();
    table.add("delete", "/v1/sessions/{id}", "End a session: cancel its calls, end its run. Only for the owner.", 204);
}

fn of_calls_and_runs(table: &mut Table<'_>) {
    table
        .add("post", "/v1/calls", "Call a tool. The owner may name a session with `X-Toolgate-Session`.", 200)
        .takes::<Call>()
        .asks::<shapes::Waiting>()
        .answer_as::<Reply>()
        .or_answer::<shapes::Accepted>(202);
    table.add("delete", "/v1/calls/{id}", "Cancel a call that runs.", 202);
    table
        .add("post", "/v1/undo", "Take back what a call, a turn or a run changed: a call of the tool `undo`.", 200)
        .takes_schema(undo())
        .answer_as::<Reply>();
    table.get("/v1/runs", "Runs, newest first.", 200, open_object()).asks::<shapes::WhichRuns>();
    table.get("/v1/runs/{id}", "A run and its calls.", 200, open_object());
    table.get("/v1/runs/{id}/tree", "A run as a tree: turns, calls, decisions, messages.", 200, open_object());
    table
        .get(
            "/v1/runs/{id}/events",
            "The events of a run: a page of JSON, or with `Accept: text/event-stream` all of them live, from the one \
             after `Last-Event-ID` on.",
            200,
            open_object(),
        )
        .asks::<shapes::WhichEvents>();
}

fn of_approvals_and_output(table: &mut Table<'_>) {
    table.get("/v1/approvals", "Calls that wait for an approval.", 200, None).answer_as::<shapes::Approvals>();
    table.get("/v1/approvals/{id}", "One of them, whole.", 200, None).answer_as::<shapes::Approval>();
    table.add("post", "/v1/approvals/{id}", "Answer it. The first answer counts.", 204).takes::<shapes::Given>();
    table
        .get("/v1/artifacts/{id}", "Stored output, whole or by `Range`.", 200, Schema::try_from(json!({})).ok())
        .asks::<shapes::Whose>()
        .or_answer_nothing(206)
        .or_answer_nothing(304);
    table.get("/v1/changes", "What calls changed.", 200, open_object()).asks::<shapes::WhichChanges>();
    table
        .get("/v1/inbox", "Tasks that wait for a worker, oldest first. Only for the owner.", 200, open_object())
        .asks::<shapes::WhichTasks>();
    table.get("/v1/inbox/{id}", "A task and its answer. Only for the owner.", 200, open_object());
}

/// The operations, as they are written down.
struct Table<'a> {
    generator: &'a mut SchemaGenerator,
    operations: Vec<Operation>,
}

impl Table<'_> {
    fn add(&mut self, method: &'static str, path: &'static str, summary: &'static str, status: u16) -> &mut Self {
        let fails: &[u16] = match (method, path.contains("{id}")) {
            ("post", _) => &[400, 401, 403, 404, 408, 409, 413, 415, 421, 429, 503],
            (_, true) => &[400, 401, 403, 404, 416, 421],
            (_, false) => &[400, 401, 403, 404, 421],
        };
        let answers = vec![(status, None)];
        self.operations.push(Operation { method, path, summary, query: None, body: None, answers, fails });
        self
    }

    fn get(&mut self, path: &'static str, summary: &'static str, status: u16, shape: Option<Schema>) -> &mut Self {
        self.add("get", path, summary, status).last().answers = vec![(status, shape)];
        self
    }

    fn takes<T: JsonSchema>(&mut self) -> &mut Self {
        let schema = self.generator.subschema_for::<T>();
        self.takes_schema(schema)
    }

    fn takes_schema(&mut self, schema: Schema) -> &mut Self {
        self.last().body = Some(schema);
        self
    }

    fn asks<T: JsonSchema>(&mut self) -> &mut Self {
        // Each field of the type is a parameter of its own, so it is written out here rather than referred to.
        self.last().query = Some(schemars::schema_for!(T));
        self
    }

    fn answer_as<T: JsonSchema>(&mut self) -> &mut Self {
        let schema = self.generator.subschema_for::<T>();
        self.last().answers[0].1 = Some(schema);
        self
    }

    fn or_answer<T: JsonSchema>(&mut self, status: u16) -> &mut Self {
        let schema = self.generator.subschema_for::<T>();
        self.last().answers.push((status, Some(schema)));
        self
    }

    fn or_answer_nothing(&mut self, status: u16) -> &mut Self {
        self.last().answers.push((status, None));
        self
    }

    fn last(&mut self) -> &mut Operation {
        self.operations.last_mut().expect("an operation was added before it is described further")
    }
}

fn described(operation: &Operation) -> Value {
    let mut parameters = Vec::new();
    if operation.path.contains("{id}") {
        parameters.push(json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let fields = operation.query.as_ref().and_then(|query| query.get("properties")?.as_object());
    for (name, schema) in fields.into_iter().flatten() {
        parameters.push(json!({ "name": name, "in": "query", "required": false, "schema": schema }));
    }
    let mut responses = Map::new();
    for (status, shape) in &operation.answers {
        responses.insert(status.to_string(), answered(*status, kind_of(operation.path), shape.as_ref()));
    }
    for status in operation.fails {
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        let content = json!({ "application/json": { "schema": schema } });
        responses.insert(status.to_string(), json!({ "description": "It was refused.", "content": content }));
    }
    let mut described = json!({ "summary": operation.summary, "parameters": parameters, "responses": responses });
    if let Some(body) = &operation.body {
        described["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": body } } });
    }
    if operation.path == "/health" {
        described["security"] = json!([]);
    }
    described
}

/// The media type of what a path answers.
fn kind_of(path: &str) -> &'static str {
    match path {
        "/metrics" => "application/openmetrics-text",
        path if path.starts_with("/v1/artifacts") => "*/*",
        _ => "application/json",
    }
}

fn answered(status: u16, kind: &str, shape: Option<&Schema>) -> Value {
    let description = match status {
        201 => "It was made.",
        202 => "It was taken up.",
        204 => "Done.",
        _ => "It worked.",
    };
    match shape {
        Some(shape) => json!({ "description": description, "content": { kind: { "schema": shape } } }),
        None => json!({ "description": description }),
    }
}

/// An object whose fields the record's own types decide.
fn open_object() -> Option<Schema> {
    Schema::try_from(json!({ "type": "object" })).ok()
}

fn undo() -> Schema {
    let text = json!({ "type": "string" });
    let turn = json!({ "type": "integer", "minimum": 0 });
    let properties = json!({ "call": text, "run": text, "turn": turn, "agent": text });
    let schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    Schema::try_from(schema).expect("an object is a schema")
}

fn problem() -> Value {
    let text = json!({ "type": "string" });
    let error = json!({
        "type": "object",
        "properties": { "code": text, "message": text, "hint": text },
        "required": ["code", "message", "hint"],
    });
    json!({ "type": "object", "properties": { "error": error }, "required": ["error"] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} is referred to and isn't there");
        }
        assert!(!text.contains("#/$defs/"), "{text}");
        assert_eq!(document["paths"].as_object().unwrap().len(), 17);
    }
}
