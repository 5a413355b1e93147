//! A table of operations, and the OpenAPI that comes from it.

use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use toolgate_contract::schemars;

/// One operation: what it takes and what it answers.
pub(super) struct ApiOperation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    query: Option<Schema>,
    body: Option<Schema>,
    /// The status when it works, and the shape that comes with it.
    answers: Vec<(u16, Option<Schema>)>,
    /// The statuses when it fails; every operation needs authentication.
    fails: &'static [u16],
    /// What a status means here, where it isn't the same as everywhere.
    refusals: Vec<(u16, &'static str)>,
}

/// The operations, as they are added.
pub(super) struct OperationTable<'a> {
    generator: &'a mut SchemaGenerator,
    pub(super) operations: Vec<ApiOperation>,
}

impl<'a> OperationTable<'a> {
    pub(super) fn new(generator: &'a mut SchemaGenerator) -> Self {
        Self { generator, operations: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        method: &'static str,
        path: &'static str,
        summary: &'static str,
        status: u16,
    ) -> &mut Self {
        let fails: &[u16] = match (method, path.contains("{id}")) {
            ("post", _) => &[400, 401, 403, 404, 408, 409, 413, 415, 421, 429, 503],
            (_, true) => &[400, 401, 403, 404, 416, 421],
            (_, false) => &[400, 401, 403, 404, 421],
        };
        let answers = vec![(status, None)];
        let (query, body, refusals) = (None, None, Vec::new());
        self.operations.push(ApiOperation { method, path, summary, query, body, answers, fails, refusals });
        self
    }

    pub(super) fn get(
        &mut self,
        path: &'static str,
        summary: &'static str,
        status: u16,
        shape: Option<Schema>,
    ) -> &mut Self {
        self.add("get", path, summary, status).answers_with(shape)
    }

    /// Sets the shape of the answer when the operation works.
    pub(super) fn answers_with(&mut self, shape: Option<Schema>) -> &mut Self {
        self.last().answers[0].1 = shape;
        self
    }

    pub(super) fn takes<T: JsonSchema>(&mut self) -> &mut Self {
        let schema = self.generator.subschema_for::<T>();
        self.takes_schema(schema)
    }

    pub(super) fn takes_schema(&mut self, schema: Schema) -> &mut Self {
        self.last().body = Some(schema);
        self
    }

    pub(super) fn asks<T: JsonSchema>(&mut self) -> &mut Self {
        // Each field of the type is a parameter of its own, so it is written out here rather than referred to.
        self.last().query = Some(schemars::schema_for!(T));
        self
    }

    pub(super) fn answer_as<T: JsonSchema>(&mut self) -> &mut Self {
        let schema = self.generator.subschema_for::<T>();
        self.answers_with(Some(schema))
    }

    pub(super) fn or_answer<T: JsonSchema>(&mut self, status: u16) -> &mut Self {
        let schema = self.generator.subschema_for::<T>();
        self.last().answers.push((status, Some(schema)));
        self
    }

    pub(super) fn or_answer_nothing(&mut self, status: u16) -> &mut Self {
        self.last().answers.push((status, None));
        self
    }

    /// Says what a status means here.
    pub(super) fn refuses(&mut self, status: u16, meaning: &'static str) -> &mut Self {
        self.last().refusals.push((status, meaning));
        self
    }

    fn last(&mut self) -> &mut ApiOperation {
        self.operations.last_mut().expect("an operation was added before it is described further")
    }
}

/// The operations, by path and method.
pub(super) fn paths(operations: &[ApiOperation]) -> Map<String, Value> {
    let mut paths = Map::new();
    for operation in operations {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        entry[operation.method] = described(operation);
    }
    paths
}

fn described(operation: &ApiOperation) -> Value {
    let (parameters, responses) = (parameters(operation), responses(operation));
    let mut described = json!({ "summary": operation.summary, "parameters": parameters, "responses": responses });
    if let Some(body) = &operation.body {
        let content = json!({ "application/json": { "schema": body } });
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    if operation.path == "/health" || (operation.path == "/v1/console/session" && operation.method == "post") {
        described["security"] = json!([]);
    }
    described
}

fn parameters(operation: &ApiOperation) -> Vec<Value> {
    let mut parameters = Vec::new();
    for name in ["id", "call"].into_iter().filter(|name| operation.path.contains(&format!("{{{name}}}"))) {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let is_required = |name: &str| {
        let required = operation.query.as_ref().and_then(|query| query.get("required")?.as_array());
        required.is_some_and(|required| required.iter().any(|known| known == name))
    };
    let fields = operation.query.as_ref().and_then(|query| query.get("properties")?.as_object());
    for (name, schema) in fields.into_iter().flatten() {
        parameters.push(json!({ "name": name, "in": "query", "required": is_required(name), "schema": schema }));
    }
    parameters
}

fn responses(operation: &ApiOperation) -> Map<String, Value> {
    let mut responses = Map::new();
    for (status, shape) in &operation.answers {
        responses.insert(status.to_string(), answered(*status, media_types(operation.path), shape.as_ref()));
    }
    let problem = json!({ "schema": { "$ref": "#/components/schemas/Problem" } });
    for status in operation.fails {
        let meaning = operation.refusals.iter().find(|(refused, _)| refused == status);
        let description = meaning.map_or("Refused.", |(_, meaning)| meaning);
        let refused = json!({ "description": description, "content": { "application/json": problem } });
        responses.insert(status.to_string(), refused);
    }
    responses
}

/// The media types in which a path answers.
fn media_types(path: &str) -> &'static [&'static str] {
    match path {
        "/metrics" => &["text/plain", "application/openmetrics-text"],
        "/v1/live" => &["text/event-stream"],
        path if path.starts_with("/v1/artifacts") => &["*/*"],
        _ => &["application/json"],
    }
}

fn answered(status: u16, media_types: &[&str], shape: Option<&Schema>) -> Value {
    let description = match status {
        201 => "Created.",
        202 => "Accepted.",
        204 => "Done.",
        _ => "Success.",
    };
    match shape {
        Some(shape) => {
            let content: Map<String, Value> =
                media_types.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": shape }))).collect();
            json!({ "description": description, "content": content })
        }
        None => json!({ "description": description }),
    }
}
