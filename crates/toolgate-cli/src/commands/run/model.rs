//! The model and its API key. The key comes from the environment or a file, never from the command line, where other
//! processes can see it.
#![allow(clippy::disallowed_methods, reason = "reads the key and the script that the user named")]

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use toolgate_agent::model::{ApiKey, Model, ModelAccess, choose};
use toolgate_config::ModelSettings;

/// The model, and how to reach it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// The model, as provider:name [default: `model.default` of your configuration].
    #[arg(long, env = "TOOLGATE_MODEL", value_name = "PROVIDER:NAME", help_heading = "Model")]
    model: Option<String>,
    /// The API's base URL, with or without /v1, if it isn't the provider's own.
    #[arg(long, env = "TOOLGATE_MODEL_URL", value_name = "URL", help_heading = "Model", hide_env_values = true)]
    base_url: Option<String>,
    /// A file with the API key. Otherwise: TOOLGATE_MODEL_KEY, or OPENAI_API_KEY or ANTHROPIC_API_KEY.
    #[arg(long, env = "TOOLGATE_MODEL_KEY_FILE", value_name = "FILE", help_heading = "Model")]
    key_file: Option<PathBuf>,
}

/// A model that was opened, with what its use costs.
pub(crate) struct OpenedModel {
    /// As it was named.
    pub(crate) name: String,
    pub(crate) model: Arc<dyn Model>,
    /// Its key, so that the caller can redact it.
    pub(crate) key: Option<ApiKey>,
    /// Its settings; a model that isn't the default one has none of the default's prices.
    pub(crate) settings: ModelSettings,
}

impl ModelArgs {
    /// The model that was named, or the default one.
    pub(crate) fn open(&self, settings: &ModelSettings) -> Result<OpenedModel> {
        let model = self.model.as_deref().or(settings.default.as_deref()).context(
            "No model was named. Use --model, TOOLGATE_MODEL or `model.default` in your configuration, such as \
             openai:gpt-5 or ollama:qwen3; `toolgate demo` needs none.",
        )?;
        self.open_named(model, settings)
    }

    /// The model of this name. Base URL, effort and prices of the settings are those of the default model.
    pub(crate) fn open_named(&self, model: &str, settings: &ModelSettings) -> Result<OpenedModel> {
        let mut settings = settings.clone();
        if settings.default.as_deref().is_some_and(|default| default != model) {
            (settings.base_url, settings.effort, settings.prices) = (None, None, None);
        }
        let base_url = self.base_url.clone().or_else(|| settings.base_url.clone());
        let provider = model.strip_prefix("json+").unwrap_or(model);
        let key = self.key(provider, base_url.is_some())?;
        let script = match provider.strip_prefix("scripted:") {
            Some(file) => Some(std::fs::read_to_string(file).with_context(|| format!("{file} can't be read"))?),
            None => None,
        };
        let (effort, idle_timeout) = (settings.effort.clone(), Some(settings.idle_timeout));
        let access = ModelAccess { base_url, key: key.clone(), script, effort, idle_timeout };
        Ok(OpenedModel { name: model.to_owned(), model: choose(model, &access)?, key, settings })
    }

    /// The provider's own environment variable is used only when the key goes to that provider.
    fn key(&self, provider: &str, has_base_url: bool) -> Result<Option<ApiKey>> {
        if let Some(file) = &self.key_file {
            let text = std::fs::read_to_string(file).with_context(|| format!("{} can't be read", file.display()))?;
            return ApiKey::new(&text).map(Some).with_context(|| format!("{} is empty", file.display()));
        }
        let of = |variable: &str| std::env::var(variable).ok().and_then(|text| ApiKey::new(&text));
        let own = match provider.split_once(':').map(|(provider, _)| provider) {
            _ if has_base_url => None,
            Some("openai" | "chat") => of("OPENAI_API_KEY"),
            Some("anthropic") => of("ANTHROPIC_API_KEY"),
            _ => None,
        };
        Ok(of("TOOLGATE_MODEL_KEY").or(own))
    }
}

impl OpenedModel {
    /// The key as a secret that is redacted everywhere.
    pub(crate) fn secrets(&self) -> Vec<(String, String)> {
        let key = self.key.as_ref().and_then(ApiKey::telling);
        key.map(|key| ("the model's key".to_owned(), key.to_owned())).into_iter().collect()
    }
}
