//! `[tools]`: which tools there are, and tools of the user's own.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use toolgate_contract::Risk;

/// The names that aren't those of configured tools, and what stands for one of those in messages.
const NAMES: [&str; 3] = ["allow", "deny", "NAME"];

/// `[tools]`: which tools there are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolsConfig {
    /// If given, only these.
    pub allow: Option<Vec<String>>,
    /// None of these.
    pub deny: Vec<String>,
    /// `[tools.NAME]`: tools that run a command of the user's own.
    pub configured: BTreeMap<String, ConfiguredToolConfig>,
}

/// `[tools.NAME]`: a tool that runs a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredToolConfig {
    /// What it does and when to use it, for the model.
    pub description: String,
    /// The program and its arguments, without a shell. `{NAME}` in a word is an argument of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A line for bash, in place of `command`. `{NAME}` in it is an argument of the call, quoted as one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The JSON Schema of the arguments, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// How much harm it can do.
    #[serde(default = "usual_risk")]
    pub risk: Risk,
    /// The directory that it runs in, relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Seconds until it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// What a call touches beside what its command line says.
    #[serde(default)]
    pub effects: EffectsConfig,
}

fn usual_risk() -> Risk {
    Risk::Medium
}

/// What a call touches: paths and hosts as they are, or `$.NAME` for what an argument of the call holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EffectsConfig {
    /// Files and directories that it reads.
    pub read: Vec<String>,
    /// Files and directories that it creates or changes.
    pub write: Vec<String>,
    /// Files and directories that it deletes.
    pub delete: Vec<String>,
    /// Hosts that it connects to, as `HOST` or `HOST:PORT`; 443 if the port is left out.
    pub connect: Vec<String>,
}

impl<'de> Deserialize<'de> for ToolsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ToolsVisitor)
    }
}

struct ToolsVisitor;

impl<'de> Visitor<'de> for ToolsVisitor {
    type Value = ToolsConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ToolsConfig, A::Error> {
        let mut tools = ToolsConfig::default();
        while let Some(name) = entries.next_key::<String>()? {
            match name.as_str() {
                "allow" => tools.allow = Some(entries.next_value()?),
                "deny" => tools.deny = entries.next_value()?,
                _ => {
                    let tool = entries.next_value_seed(ToolEntry(&name))?;
                    tools.configured.insert(name, tool);
                }
            }
        }
        Ok(tools)
    }
}

/// What stands under this name in `[tools]`. Only a table is a tool; anything else is a setting whose name is misspelt.
struct ToolEntry<'a>(&'a str);

impl ToolEntry<'_> {
    fn misspelt<E: Error>(&self) -> Result<ConfiguredToolConfig, E> {
        Err(E::unknown_field(self.0, &NAMES))
    }
}

impl<'de> DeserializeSeed<'de> for ToolEntry<'_> {
    type Value = ConfiguredToolConfig;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ConfiguredToolConfig, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ToolEntry<'_> {
    type Value = ConfiguredToolConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table that describes a tool")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<ConfiguredToolConfig, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<ConfiguredToolConfig, A::Error> {
        self.misspelt()
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<ConfiguredToolConfig, E> {
        self.misspelt()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<ConfiguredToolConfig, E> {
        self.misspelt()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<ConfiguredToolConfig, E> {
        self.misspelt()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<ConfiguredToolConfig, E> {
        self.misspelt()
    }
}
