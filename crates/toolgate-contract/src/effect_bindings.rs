//! The effects of tools that weren't written for Toolgate: whoever configures such a tool says which of its arguments are paths
//! and hosts, so that policy, locks and undo know what a call touches.

use serde_json::Value;

use crate::{Access, Effect, Permission, ToolError};

/// The port of a host for which none is given.
const USUAL_PORT: u16 = 443;

/// What a call touches, by its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffectBindings {
    paths: Vec<(Access, EffectSource)>,
    hosts: Vec<EffectSource>,
}

/// Where a path or a host is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EffectSource {
    /// It is the same for every call.
    Fixed(String),
    /// In the argument that these names lead to.
    Argument(Vec<String>),
}

impl EffectSource {
    /// Reads `$.NAME` as an argument, and anything else as what it is.
    fn parse(text: &str) -> Self {
        match text.strip_prefix("$.") {
            Some(names) => Self::Argument(names.split('.').map(str::to_owned).collect()),
            None => Self::Fixed(text.to_owned()),
        }
    }

    /// What a call names here. An argument that is left out names nothing.
    fn values(&self, args: &Value) -> Result<Vec<String>, ToolError> {
        let mut found = Vec::new();
        match self {
            Self::Fixed(text) => found.push(text.clone()),
            Self::Argument(names) => collect(args, names, &names.join("."), &mut found)?,
        }
        Ok(found)
    }
}

/// Follows names into arguments, through every entry of a list.
fn collect(value: &Value, names: &[String], whole: &str, found: &mut Vec<String>) -> Result<(), ToolError> {
    match (value, names) {
        (Value::Array(entries), _) => entries.iter().try_for_each(|entry| collect(entry, names, whole, found)),
        (Value::Object(fields), [name, rest @ ..]) => {
            fields.get(name).map_or(Ok(()), |field| collect(field, rest, whole, found))
        }
        (Value::Null, _) => Ok(()),
        (Value::String(text), []) => {
            found.push(text.clone());
            Ok(())
        }
        _ => Err(ToolError::invalid_args(format!(
            "The argument `{whole}` names what the call touches, so it has to be text or a list of texts."
        ))),
    }
}

impl EffectBindings {
    /// Adds paths that a call reads, writes or deletes: each as it is, or as `$.NAME`.
    #[must_use]
    pub fn with_paths(mut self, access: Access, paths: &[String]) -> Self {
        self.paths.extend(paths.iter().map(|path| (access, EffectSource::parse(path))));
        self
    }

    /// Adds hosts that a call connects to: `HOST`, `HOST:PORT`, or either as `$.NAME`.
    #[must_use]
    pub fn with_hosts(mut self, hosts: &[String]) -> Self {
        self.hosts.extend(hosts.iter().map(|host| EffectSource::parse(host)));
        self
    }

    /// Whether nothing is stated.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.hosts.is_empty()
    }

    /// The permissions that calls need.
    pub fn permissions(&self) -> Vec<Permission> {
        let mut permissions: Vec<Permission> =
            self.paths.iter().map(|(access, _)| Effect::at(*access, "").permission()).collect();
        permissions.extend(self.hosts.first().map(|_| Permission::NetConnect));
        permissions.sort_unstable();
        permissions.dedup();
        permissions
    }

    /// What a call with these arguments touches.
    pub fn effects(&self, args: &Value) -> Result<Vec<Effect>, ToolError> {
        let mut effects = Vec::new();
        for (access, source) in &self.paths {
            effects.extend(source.values(args)?.into_iter().map(|path| Effect::at(*access, path)));
        }
        for source in &self.hosts {
            effects.extend(source.values(args)?.iter().map(|host| connect(host)));
        }
        Ok(effects)
    }
}

fn connect(text: &str) -> Effect {
    let port = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = port.unwrap_or((text, USUAL_PORT));
    Effect::Connect { host: host.to_owned(), port }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn effects_come_from_arguments_and_what_is_left_out_touches_nothing() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let bindings = EffectBindings::default()
            .with_paths(Access::Write, &names(&["$.path", "$.edits.path", "dist"]))
            .with_paths(Access::Read, &names(&["$.paths"]))
            .with_hosts(&names(&["$.host", "example.com:8080"]));
        let args =
            json!({ "path": "a", "edits": [{ "path": "b" }, { "path": "c" }], "paths": ["d", "e"], "host": "h" });
        let host = |host: &str, port| Effect::Connect { host: host.into(), port };
        let [a, b, c, dist] = ["a", "b", "c", "dist"].map(Effect::write);
        let (d, e) = (Effect::read("d"), Effect::read("e"));
        let expected = vec![a, b, c, dist.clone(), d, e, host("h", 443), host("example.com", 8080)];
        assert_eq!(bindings.effects(&args), Ok(expected));
        assert_eq!(bindings.effects(&json!({ "path": null })), Ok(vec![dist, host("example.com", 8080)]));
        assert_eq!(bindings.permissions(), [Permission::FsRead, Permission::FsWrite, Permission::NetConnect]);
        for wrong in [json!({ "path": 5 }), json!({ "path": { "deep": "a" } }), json!({ "edits": ["a"] })] {
            assert!(bindings.effects(&wrong).is_err(), "{wrong}");
        }
    }
}
