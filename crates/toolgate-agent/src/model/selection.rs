//! Which model to use, as `provider:name`, and where its key and address come from.

use std::sync::Arc;
use std::time::Duration;

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
    /// How much the model should reason, in the provider's own word.
    pub effort: Option<String>,
    /// How long the server may send nothing.
    pub idle_timeout: Option<Duration>,
}

impl ModelAccess {
    /// The API below the base URL, or below the provider's own.
    fn endpoint(&self, usual: &str, key: Option<(&'static str, &str, &ApiKey)>) -> Result<ModelEndpoint, ModelError> {
        let base = self.base_url.as_ref().map_or_else(|| usual.to_owned(), |base| completed(base, usual));
        let endpoint = ModelEndpoint::new(&base, key)?;
        Ok(match self.idle_timeout {
            Some(idle_timeout) => endpoint.with_idle_timeout(idle_timeout),
            None => endpoint,
        })
    }
}

/// The paths that people copy along with a base URL.
const COPIED_PATHS: [&str; 4] = ["/chat/completions", "/responses", "/messages", "/models"];

/// A base URL as the API needs it, however it was written: with or without `/v1`, or with the path of a request.
fn completed(base: &str, usual: &str) -> String {
    let base = base.trim().trim_end_matches('/');
    let base = COPIED_PATHS.iter().find_map(|path| base.strip_suffix(path)).unwrap_or(base);
    match usual.strip_suffix("/v1").is_some() {
        false => base.strip_suffix("/v1").unwrap_or(base).to_owned(),
        // A path of its own is taken as it is; a host alone has its API below /v1.
        true if base.split("://").last().unwrap_or(base).contains('/') => base.to_owned(),
        true => format!("{base}/v1"),
    }
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
    let bearer = access.key.as_ref().map(|key| ("authorization", "Bearer ", key));
    Ok(match provider {
        "openai" => {
            if bearer.is_none() && access.base_url.is_none() {
                return Err(ModelSelectionError::NoKey { provider: "OpenAI", variable: "OPENAI_API_KEY" });
            }
            let endpoint = access.endpoint("https://api.openai.com/v1", bearer)?;
            Arc::new(Responses::new(name, endpoint).with_effort(access.effort.clone()))
        }
        "chat" => {
            let endpoint = access.endpoint("https://api.openai.com/v1", bearer)?;
            Arc::new(ChatCompletions::new(name, endpoint).with_effort(access.effort.clone()))
        }
        "ollama" => {
            let endpoint = access.endpoint("http://127.0.0.1:11434/v1", bearer)?;
            Arc::new(ChatCompletions::new(name, endpoint).with_effort(access.effort.clone()))
        }
        "anthropic" => {
            let key = access.key.as_ref().map(|key| ("x-api-key", "", key));
            if key.is_none() && access.base_url.is_none() {
                return Err(ModelSelectionError::NoKey { provider: "Anthropic", variable: "ANTHROPIC_API_KEY" });
            }
            let endpoint = access.endpoint("https://api.anthropic.com", key)?;
            Arc::new(Anthropic::new(name, endpoint).with_effort(access.effort.clone()))
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
    fn a_base_url_may_be_written_in_every_usual_way() {
        let openai = |base: &str| completed(base, "https://api.openai.com/v1");
        for base in [
            "http://127.0.0.1:8080",
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8080/v1",
            "http://127.0.0.1:8080/v1/",
            "http://127.0.0.1:8080/v1/chat/completions",
        ] {
            assert_eq!(openai(base), "http://127.0.0.1:8080/v1", "{base}");
        }
        assert_eq!(openai("https://example.com/openai/deployments/x"), "https://example.com/openai/deployments/x");
        for base in ["https://a.example", "https://a.example/v1", "https://a.example/v1/messages"] {
            assert_eq!(completed(base, "https://api.anthropic.com"), "https://a.example", "{base}");
        }
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
