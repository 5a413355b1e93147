//! Which model to use, as `provider:name`, and where its key and address come from.

use std::sync::Arc;

use super::{
    Anthropic, ApiKey, ChatCompletions, JsonProtocol, Model, ModelEndpoint, ModelError, ModelScript, Responses,
    ScriptedModel,
};

/// How a model is reached, from the environment and the command line.
#[derive(Debug, Clone, Default)]
pub struct ModelAccess {
    /// A URL that replaces the provider's own.
    pub base_url: Option<String>,
    /// The key.
    pub key: Option<ApiKey>,
    /// The text of the script, for `scripted`.
    pub script: Option<String>,
}

/// Why a model can't be selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelSelectionError {
    /// No such provider.
    #[error(
        "`{0}` is not a model. Write provider:name, such as openai:gpt-5, anthropic:claude-sonnet-4-5, chat:NAME with \
         --base-url, ollama:NAME or scripted:FILE. Put json+ before it for a model without function calling."
    )]
    Unknown(String),
    /// The provider needs a key.
    #[error("{provider} needs a key. Set {variable}, or name a file with --key-file.")]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The environment variable that can hold the key.
        variable: &'static str,
    },
    /// The endpoint can't be used.
    #[error(transparent)]
    Wire(#[from] ModelError),
}

/// Creates the model that is named.
pub fn choose(model: &str, access: &ModelAccess) -> Result<Arc<dyn Model>, ModelSelectionError> {
    if let Some(plain) = model.strip_prefix("json+") {
        return Ok(Arc::new(JsonProtocol::over(choose(plain, access)?)));
    }
    let unknown = || ModelSelectionError::Unknown(model.to_owned());
    let (provider, name) = model.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(unknown)?;
    let base = |usual: &str| access.base_url.clone().unwrap_or_else(|| usual.to_owned());
    let bearer = access.key.as_ref().map(|key| ("authorization", "Bearer ", key));
    Ok(match provider {
        "openai" => {
            if bearer.is_none() && access.base_url.is_none() {
                return Err(ModelSelectionError::NoKey { provider: "OpenAI", variable: "OPENAI_API_KEY" });
            }
            Arc::new(Responses::new(name, ModelEndpoint::new(&base("https://api.openai.com/v1"), bearer)?))
        }
        "chat" => Arc::new(ChatCompletions::new(name, ModelEndpoint::new(&base("https://api.openai.com/v1"), bearer)?)),
        "ollama" => {
            Arc::new(ChatCompletions::new(name, ModelEndpoint::new(&base("http://127.0.0.1:11434/v1"), bearer)?))
        }
        "anthropic" => {
            let key = access.key.as_ref().map(|key| ("x-api-key", "", key));
            if key.is_none() && access.base_url.is_none() {
                return Err(ModelSelectionError::NoKey { provider: "Anthropic", variable: "ANTHROPIC_API_KEY" });
            }
            Arc::new(Anthropic::new(name, ModelEndpoint::new(&base("https://api.anthropic.com"), key)?))
        }
        "scripted" => Arc::new(ScriptedModel::new(ModelScript::parse(access.script.as_deref().ok_or_else(unknown)?)?)),
        _ => return Err(unknown()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(model: &str, access: &ModelAccess) -> String {
        match choose(model, access) {
            Ok(model) => model.name().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_model_is_chosen_by_provider_and_name() {
        let key = ModelAccess { key: ApiKey::new("sk-1"), ..ModelAccess::default() };
        assert_eq!(said("openai:gpt-5", &key), "gpt-5");
        assert_eq!(said("anthropic:claude-sonnet-4-5", &key), "claude-sonnet-4-5");
        assert_eq!(said("json+ollama:qwen3:8b", &ModelAccess::default()), "json+qwen3:8b");
        let script = ModelAccess { script: Some("turns = []".into()), ..ModelAccess::default() };
        assert_eq!(said("scripted:demo.toml", &script), "scripted");
    }

    #[test]
    fn what_is_missing_is_said() {
        let none = ModelAccess::default();
        assert!(said("openai:gpt-5", &none).contains("OPENAI_API_KEY"));
        assert!(said("anthropic:claude", &none).contains("ANTHROPIC_API_KEY"));
        for wrong in ["gpt-5", "openai:", "copilot:x", ""] {
            assert!(said(wrong, &none).contains("provider:name"), "{wrong}");
        }
        let key = ModelAccess {
            key: ApiKey::new("sk-1"),
            base_url: Some("http://example.com".into()),
            ..ModelAccess::default()
        };
        assert!(said("chat:x", &key).contains("unencrypted"));
    }
}
