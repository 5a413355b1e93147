//! Which dialect a model knows best: the one of the client that its maker trains it with.

use crate::dialect_set::DialectSet;

/// Words in a model's name, and the dialect that models of such a name know. The first that fits counts.
const KNOWN: &[(&str, &str)] = &[
    // This family calls a shell of its own, which the native `shell` is declared as.
    ("codex-mini", "native"),
    // Trained with tools of their own, and not with a client.
    ("gpt-oss", "native"),
    ("gpt-4", "native"),
    ("gpt-3", "native"),
    ("claude-3", "claude-2.0"),
    ("claude", "claude"),
    ("codex", "codex"),
    ("gpt-", "codex"),
    ("gemini", "gemini"),
];

/// The dialects for a model, named as `provider:name`; the native tools where none is known.
pub fn best_known(model: &str) -> DialectSet {
    let (provider, name) = model.split_once(':').unwrap_or(("", model));
    let name = name.to_ascii_lowercase();
    let known = KNOWN.iter().find(|(word, _)| name.contains(word));
    // Patches of this dialect are a custom tool with a grammar, which other servers of the same APIs rarely accept.
    let known = known.filter(|(_, dialect)| *dialect != "codex" || provider == "openai");
    known.and_then(|(_, dialect)| dialect.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_gets_the_names_that_it_was_trained_with() {
        for (model, expected) in [
            ("anthropic:claude-sonnet-4-5", "claude"),
            ("anthropic:claude-3-5-haiku-latest", "claude-2.0"),
            ("chat:anthropic/claude-opus-5", "claude"),
            ("openai:gpt-5.5", "codex"),
            ("openai:gpt-5.1-codex-max", "codex"),
            ("chat:openai/gpt-5.5", "native"),
            ("openai:codex-mini-latest", "native"),
            ("openai:gpt-4.1", "native"),
            ("json+ollama:gpt-oss:20b", "native"),
            ("ollama:qwen3", "native"),
            ("scripted:demo.toml", "native"),
        ] {
            assert_eq!(best_known(model).to_string(), expected, "{model}");
        }
    }
}
