//! A request to use a tool, in the one form that every front end converts its calls to.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use semver::VersionReq;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Clock, Right, ToolError};

/// The tool that finds tools of other servers.
pub const TOOLS_FIND: &str = "tools_find";

/// The tool that uses one of them by its name.
pub const TOOLS_USE: &str = "tools_use";

/// The tool that lists what another server has to read.
pub const MCP_RESOURCES: &str = "mcp_resources";

/// The tool that reads it.
pub const MCP_READ: &str = "mcp_read";

/// A request to use a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// Globally unique; generated if the caller provides none.
    pub tool_call_id: String,
    /// The tool's name.
    pub name: String,
    /// The versions of the tool that the caller supports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionReq>,
    /// The arguments, not yet validated.
    pub args: Value,
    /// Rights that the caller expects to need: permissions that the tool declares, or exactly one effect beyond them,
    /// which is judged and approved with the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requested_permissions: Vec<Right>,
    /// Why the model makes the call, for the person who may be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The client's own tool that the call stands for, where a hook of the client brought it. No caller can send this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooked: Option<HookedTool>,
    /// Groups the calls of one task.
    pub trace_id: String,
    /// When the call was made.
    pub timestamp: Timestamp,
}

/// A tool of a client's own, as its hook names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookedTool {
    /// The client.
    pub client: String,
    /// The tool, as the client's model knows it.
    pub tool: String,
    /// Whether the client executes the call itself, once it was judged here.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub client_executes: bool,
}

/// The wire format: fields that a caller may omit are optional here.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Call")]
#[serde(deny_unknown_fields)]
struct CallJson {
    /// Globally unique; generated if missing.
    tool_call_id: Option<String>,
    /// The tool's name; `tool` is another name for this field.
    #[serde(alias = "tool")]
    name: String,
    /// The versions of the tool that the caller supports, such as `^1`.
    #[schemars(with = "Option<String>")]
    version: Option<VersionReq>,
    /// The arguments, by the tool's schema.
    #[serde(default = "empty_object")]
    #[schemars(with = "serde_json::Map<String, Value>")]
    args: Value,
    /// Rights that the caller expects to need.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    requested_permissions: Vec<Right>,
    /// Why the model makes the call, for the person who may be asked.
    justification: Option<String>,
    /// Groups the calls of one task.
    trace_id: Option<String>,
    /// When the call was made: in RFC 3339 format, or as a number of seconds since 1970. From 100000000000 on, the number is one of
    /// milliseconds.
    #[serde(default, deserialize_with = "read_time")]
    #[schemars(with = "Option<TimeJson>")]
    timestamp: Option<Timestamp>,
}

/// The forms of a time, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes what `read_time` reads")]
enum TimeJson {
    Text(String),
    Number(f64),
}

/// Numbers from here on are milliseconds: as seconds, they would be beyond the year 5000.
const MILLISECONDS_FROM: f64 = 1e11;

/// Reads a time in either form.
fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let wrong =
        |why: String| D::Error::custom(format!("{why}; expected a time in RFC 3339 format, or seconds since 1970"));
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::String(text) => text.parse().map(Some).map_err(|fault| wrong(format!("`{text}` is no time ({fault})"))),
        Value::Number(number) => {
            let given = number.as_f64().unwrap_or(f64::NAN);
            let milliseconds = if given >= MILLISECONDS_FROM { given } else { given * 1000.0 };
            let time = Some(milliseconds).filter(|time| time.is_finite() && time.abs() < i64::MAX as f64);
            let time = time.and_then(|time| Timestamp::from_millisecond(time.round() as i64).ok());
            time.map(Some).ok_or_else(|| wrong(format!("`{number}` is no time")))
        }
        other => Err(wrong(format!("`{other}` is no time"))),
    }
}

/// The schema of what [`Call::from_value`] reads.
impl JsonSchema for Call {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        CallJson::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        CallJson::json_schema(generator)
    }
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

impl Call {
    /// The call that this one stands for: a call of [`TOOLS_USE`] is one of the tool that it names, so that policy, record and undo
    /// know nothing else. One that isn't written by its schema stays, and is refused by it.
    #[must_use]
    pub fn unwrapped(mut self) -> Self {
        let named = self.args.get("tool").and_then(Value::as_str).map(str::to_owned);
        let is_whole =
            self.args.as_object().is_some_and(|args| args.keys().all(|name| name == "tool" || name == "args"));
        let inner = self.args.get("args").cloned().unwrap_or_else(empty_object);
        match named {
            Some(tool) if self.name == TOOLS_USE && is_whole && inner.is_object() && tool != TOOLS_USE => {
                (self.name, self.args) = (tool, inner);
            }
            _ => {}
        }
        self
    }

    /// A call with fresh ids, made now. It is a trace of its own.
    pub fn new(name: impl Into<String>, args: Value, clock: &dyn Clock) -> Self {
        let id = clock.id().simple();
        Self {
            tool_call_id: format!("call_{id}"),
            name: name.into(),
            version: None,
            args,
            requested_permissions: Vec::new(),
            justification: None,
            hooked: None,
            trace_id: format!("trace_{id}"),
            timestamp: clock.now(),
        }
    }

    /// The call that a JSON value describes, with what the caller omitted filled in. Whoever has bytes parses them strictly
    /// first, so that what is judged is what was sent.
    pub fn from_value(value: Value, clock: &dyn Clock) -> Result<Self, ToolError> {
        if !value.is_object() {
            // serde would also accept an array with the fields in order. That would be guessing.
            return Err(ToolError::invalid_args("The call is not well formed: it is not an object."));
        }
        let wire: CallJson = serde_path_to_error::deserialize(value)
            .map_err(|fault| ToolError::invalid_args(format!("The call is not well formed: {fault}.")))?;
        let fresh = Self::new(wire.name, wire.args, clock);
        Ok(Self {
            tool_call_id: wire.tool_call_id.unwrap_or(fresh.tool_call_id),
            version: wire.version,
            requested_permissions: wire.requested_permissions,
            justification: wire.justification,
            hooked: None,
            trace_id: wire.trace_id.unwrap_or(fresh.trace_id),
            timestamp: wire.timestamp.unwrap_or(fresh.timestamp),
            name: fresh.name,
            args: fresh.args,
        })
    }
}
