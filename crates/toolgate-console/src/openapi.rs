//! The routes as an OpenAPI 3.1 document. Schemas come from the types that are read and written; the operations are listed
//! here, in the order of the routes.

mod operations;

use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use toolgate_contract::{Call, Reply, schemars};

use self::operations::{ApiOperation, OperationTable, paths};
use crate::routes::schemas;

/// The description at the top of the document.
const ABOUT: &str = "The gate between a language model and a machine. A call that reached the gate is answered with status \
                     200 and its reply, whose `ok` says how it ended; other statuses come with a `Problem`.";

/// The whole document.
pub(crate) fn document() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let paths = paths(&operations(&mut generator));
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Problem".into(), problem());
    let license = json!({ "name": "Apache-2.0 OR MIT" });
    let info =
        json!({ "title": "Toolgate", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT, "license": license });
    let token = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "The owner's token, or a session's. Only in this header, never in a URL.",
    });
    let components = json!({ "securitySchemes": { "token": token }, "schemas": schemas });
    let security = json!([{ "token": [] }]);
    json!({ "openapi": "3.1.0", "info": info, "security": security, "paths": paths, "components": components })
}

/// Every operation, in the order of the routes.
fn operations(generator: &mut SchemaGenerator) -> Vec<ApiOperation> {
    let mut table = OperationTable::new(generator);
    server_operations(&mut table);
    call_and_run_operations(&mut table);
    approval_and_output_operations(&mut table);
    table.operations
}

fn server_operations(table: &mut OperationTable<'_>) {
    table.get("/health", "Say that the server is up. Needs no token.", 200, closed(&[("ok", "boolean")]));
    table.get("/metrics", "Numbers for Prometheus. Only for the owner.", 200, schema(json!({ "type": "string" })));
    table.get("/openapi.json", "This description.", 200, open_object());
    let sign_in = "Sign a browser in: exchange a one-time link for a cookie. Needs no token, but `Origin` and \
                   `X-Toolgate-Console: 1`.";
    table.add("post", "/v1/console/session", sign_in, 204).takes::<schemas::SignInBody>();
    table
        .get("/v1/console/session", "Who is signed in, and where. Only for the owner.", 200, None)
        .answer_as::<schemas::SignedInView>();
    table.add("delete", "/v1/console/session", "Sign this browser out. Only for the owner.", 204);
    table.get("/v1/live", LIVE, 200, schema(json!({ "type": "string" })));
    table
        .get("/v1/search", "Runs and calls that contain a text.", 200, closed(&[("runs", "array"), ("calls", "array")]))
        .asks::<schemas::SearchQuery>();
    let doctor = "Which guarantees hold here, and how to fix those that don't. Only for the owner.";
    table.get("/v1/doctor", doctor, 200, closed(&[("checks", "array")]));
    table.get("/v1/tools", "The tools that the session may use.", 200, closed(&[("tools", "array")]));
    table
        .add("post", "/v1/tools", "Register a tool of the client's own, for its session.", 201)
        .takes::<schemas::NewToolBody>()
        .answer_as::<schemas::RegisteredToolView>();
    table.add("delete", "/v1/tools/{id}", "Remove a tool of the client's own.", 204);
    table
        .get("/v1/client-calls", "Calls of the client's own tools that wait for a result.", 200, None)
        .answer_as::<schemas::ClientCallList>();
    table
        .add("post", "/v1/client-calls/{id}", "Post the result of one, or why it failed. The first answer counts.", 204)
        .takes::<schemas::ClientResultBody>();
    table.get("/v1/sessions", "All sessions. Only for the owner.", 200, None).answer_as::<schemas::SessionList>();
    table
        .add(
            "post",
            "/v1/sessions",
            "Begin a session with a run, grants, tools and a token of its own. Only for the owner.",
            201,
        )
        .takes::<schemas::NewSession>()
        .answer_as::<schemas::SessionView>();
    table.add("delete", "/v1/sessions/{id}", "End a session: cancel its calls, end its run. Only for the owner.", 204);
}

fn call_and_run_operations(table: &mut OperationTable<'_>) {
    table
        .add("post", "/v1/calls", CALL, 200)
        .takes::<Call>()
        .asks::<schemas::CallQuery>()
        .answer_as::<schemas::CallAnswer>()
        .or_answer::<schemas::AcceptedCall>(202);
    let show =
        "A call of the session: whether it runs, or its reply. `Location` of a call that isn't waited for leads here.";
    table.get("/v1/calls/{id}", show, 200, None).answer_as::<schemas::CallView>();
    table.add("delete", "/v1/calls/{id}", "Cancel a call that runs.", 202);
    let check =
        "What would become of a call now: whether it would run, wait for an approval, or be refused. Nothing runs.";
    table.add("post", "/v1/check", check, 200).takes::<Call>().answer_as::<toolgate_workspace::CallCheck>();
    table
        .add("post", "/v1/undo", "Undo what a call, a turn or a run changed: a call of the tool `undo`.", 200)
        .takes_schema(undo())
        .answer_as::<Reply>();
    table.get("/v1/runs", "Runs, newest first.", 200, closed(&[("runs", "array")])).asks::<schemas::RunsQuery>();
    table.get("/v1/runs/{id}", "A run and its calls.", 200, closed(&[("run", "object"), ("calls", "array")]));
    table.get("/v1/runs/{id}/tree", "A run as a tree: turns, calls, decisions, messages.", 200, open_object());
    let outline = "A part of a run's rows: agents, turns and calls, as a tree or as a list of calls.";
    table
        .get("/v1/runs/{id}/outline", outline, 200, None)
        .answer_as::<crate::run_outline::OutlineWindow>()
        .asks::<schemas::OutlineQuery>();
    let call = "All that is on record about a call: arguments, effects, verdict, approval, reply, changes with diffs.";
    table.get("/v1/runs/{id}/calls/{call}", call, 200, open_object());
    let page = schema(json!({
        "type": "object",
        "properties": { "events": { "type": "array" }, "next": { "type": ["integer", "null"] } },
        "required": ["events", "next"],
        "additionalProperties": false,
    }));
    table.get("/v1/runs/{id}/events", EVENTS, 200, page).asks::<schemas::EventsQuery>();
}

/// The description of a call.
const CALL: &str =
    "Call a tool, in the session's dialects if it has some. The owner may name a session with `X-Toolgate-Session`.";

/// The description of the live stream.
const LIVE: &str = "Everything that happens, as server-sent events named `live`, each an event in short; `reset` says that \
                    some are missing and lists have to be loaded again. `Last-Event-ID` resumes. A session gets what is \
                    about its own run.";

/// The description of the events of a run.
const EVENTS: &str = "The events of a run: a page of JSON, or with `Accept: text/event-stream` all of them live, from the one \
                      after `Last-Event-ID` on. The live stream also has what processes write, as `process.output` without \
                      an id.";

/// The description of status 403 for an artifact.
const SECRET_IN_ARTIFACT: &str = "Refused. With the code `secret_in_artifact`: the artifact is binary data that contains a \
                                  secret. No part of it is sent, since replacing the secret would damage it.";

fn approval_and_output_operations(table: &mut OperationTable<'_>) {
    table.get("/v1/approvals", "Calls that wait for an approval.", 200, None).answer_as::<schemas::ApprovalList>();
    table.get("/v1/approvals/{id}", "One of them, whole.", 200, None).answer_as::<schemas::ApprovalView>();
    table
        .add("post", "/v1/approvals/{id}", "Answer it. The first answer counts.", 204)
        .takes::<schemas::ApprovalAnswerBody>();
    let grants = "Approvals that reach beyond one call: of the workspace, or of the session.";
    table.get("/v1/grants", grants, 200, None).answer_as::<schemas::GrantList>();
    let revoke = "Revoke one. What reaches every session, only the owner revokes.";
    table.add("delete", "/v1/grants/{id}", revoke, 204);
    table.get("/v1/questions", "Questions of agents that wait.", 200, None).answer_as::<schemas::QuestionList>();
    table
        .add("post", "/v1/questions/{id}", "Answer one. The first answer counts.", 204)
        .takes::<schemas::QuestionAnswerBody>();
    table
        .get("/v1/artifacts/{id}", "Stored output, whole or by `Range`.", 200, schema(json!({})))
        .asks::<schemas::ArtifactQuery>()
        .or_answer_nothing(206)
        .or_answer_nothing(304)
        .refuses(403, SECRET_IN_ARTIFACT);
    table
        .get("/v1/changes", "What calls changed.", 200, closed(&[("changes", "array")]))
        .asks::<schemas::ChangesQuery>();
    console_operations(table);
    table
        .get(
            "/v1/inbox",
            "Tasks that wait for a worker, oldest first. Only for the owner.",
            200,
            closed(&[("tasks", "array")]),
        )
        .asks::<schemas::TasksQuery>();
    table
        .add("post", "/v1/inbox", "Add a task for a worker (`toolgate work`). Only for the owner.", 201)
        .takes::<schemas::NewTaskBody>()
        .answers_with(open_object());
    table.get("/v1/inbox/{id}", "A task and its answer. Only for the owner.", 200, open_object());
}

fn console_operations(table: &mut OperationTable<'_>) {
    let quarantine = "Changes of commands that were not written to the workspace, and why. Only for the owner.";
    table.get("/v1/quarantine", quarantine, 200, closed(&[("quarantined", "array")]));
    table
        .add("post", "/v1/quarantine/release", "Write one of them to the workspace. Only for the owner.", 200)
        .takes::<schemas::ReleaseBody>()
        .answer_as::<Reply>();
    let processes = "Running processes: of all sessions for the owner, otherwise of the session.";
    table.get("/v1/processes", processes, 200, None).answer_as::<schemas::ProcessList>();
    let process = "One of them, with what its terminal shows or the end of its output.";
    table.get("/v1/processes/{id}", process, 200, None).answer_as::<toolgate_runtime::ProcessView>();
    table
        .add("post", "/v1/processes/{id}/input", "Type into a process. Only for the owner.", 204)
        .takes::<schemas::ProcessInputBody>();
    table
        .add("post", "/v1/processes/{id}/size", "Change the size of its terminal. Only for the owner.", 204)
        .takes::<schemas::ProcessSizeBody>();
    table
        .add("post", "/v1/processes/{id}/stop", "Interrupt or kill it. Only for the owner.", 202)
        .takes::<schemas::ProcessStopBody>();
    table.get("/v1/policy", "The rules in force, by layer and origin. Only for the owner.", 200, open_object());
    table
        .add("post", "/v1/policy/check", "How a command or a call would be judged, and why. Only for the owner.", 200)
        .takes::<schemas::PolicyCheckBody>()
        .answers_with(open_object());
    table
        .add("post", "/v1/policy/replay", "What a draft would have decided in past runs. Only for the owner.", 200)
        .takes::<schemas::PolicyReplayBody>()
        .answers_with(open_object());
}

fn schema(value: Value) -> Option<Schema> {
    Schema::try_from(value).ok()
}

/// An object whose fields the record's own types decide.
fn open_object() -> Option<Schema> {
    schema(json!({ "type": "object" }))
}

/// An object with exactly these fields, each of this type.
fn closed(fields: &[(&str, &str)]) -> Option<Schema> {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let fields: Map<String, Value> =
        fields.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind }))).collect();
    schema(json!({ "type": "object", "properties": fields, "required": names, "additionalProperties": false }))
}

fn undo() -> Schema {
    let text = json!({ "type": "string" });
    let turn = json!({ "type": "integer", "minimum": 0 });
    let approve = json!({ "type": "boolean", "description": "The owner approves the undo by asking for it." });
    let properties = json!({ "call": text, "run": text, "turn": turn, "agent": text, "approve": approve });
    let schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    Schema::try_from(schema).expect("an object is a schema")
}

fn problem() -> Value {
    let error = closed(&[("code", "string"), ("message", "string"), ("hint", "string")]);
    json!({
        "type": "object",
        "properties": { "error": error },
        "required": ["error"],
        "additionalProperties": false,
    })
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
        assert_eq!(document["paths"].as_object().unwrap().len(), 43);
    }

    #[test]
    fn an_artifact_that_is_refused_for_its_content_is_described() {
        let refused = &document()["paths"]["/v1/artifacts/{id}"]["get"]["responses"]["403"];
        assert!(refused["description"].as_str().unwrap().contains("`secret_in_artifact`"), "{refused}");
        assert_eq!(document()["paths"]["/v1/runs/{id}"]["get"]["responses"]["403"]["description"], "Refused.");
    }

    /// What a request may hold is said to the last field, since the server refuses every other.
    #[test]
    fn bodies_are_closed() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let bodies = paths.values().filter_map(|path| path["post"].get("requestBody"));
        let mut seen = 0;
        for body in bodies {
            let schema = &body["content"]["application/json"]["schema"];
            let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/components/schemas/"));
            let schema = name.map_or(schema, |name| &document["components"]["schemas"][name]);
            let forms = schema["oneOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
            assert!(forms.iter().all(|form| form["additionalProperties"] == false), "{schema}");
            seen += 1;
        }
        assert_eq!(seen, 16);
    }
}
