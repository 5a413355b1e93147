//! Environment variables that change what runs, or where it looks: setting one makes the following commands unknown.

use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableTable {
    harmless: Vec<String>,
    decisive: Vec<String>,
}

static TABLE: LazyLock<VariableTable> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/environment.json")))
        .expect("the built-in table is tested")
});

/// Whether a variable of this name decides what programs do.
pub(super) fn is_decisive(name: &str) -> bool {
    let is_like = |pattern: &String| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => name == pattern,
    };
    TABLE.decisive.iter().any(is_like) && !TABLE.harmless.iter().any(is_like)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_is_told_from_what_does_not() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "GIT_PAGER",
            "PAGER",
            "MANPAGER",
            "BASH_ENV",
            "NODE_OPTIONS",
            "IFS",
        ] {
            assert!(is_decisive(name), "{name}");
        }
        for name in ["RUST_LOG", "LC_ALL", "NODE_ENV", "CI", "FOO", "x", "PYTHONDONTWRITEBYTECODE", "CARGO_TERM_COLOR"]
        {
            assert!(!is_decisive(name), "{name}");
        }
    }
}
