//! The model and its API key. The key comes from the environment or a file, never from the command line, where other
//! processes can see it.
#![allow(clippy::disallowed_methods, reason = "reads the key and the script that the user named")]

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use toolgate_agent::model::{ApiKey, Model, ModelAccess, choose};

/// The model, and how to reach it.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The model, as provider:name.
    #[arg(long, env = "TOOLGATE_MODEL", value_name = "PROVIDER:NAME", help_heading = "Model")]
    model: Option<String>,
    /// The API's base URL, if it isn't the provider's own.
    #[arg(long, env = "TOOLGATE_MODEL_URL", value_name = "URL", help_heading = "Model", hide_env_values = true)]
    base_url: Option<String>,
    /// A file with the API key. Otherwise: TOOLGATE_MODEL_KEY, or OPENAI_API_KEY or ANTHROPIC_API_KEY.
    #[arg(long, env = "TOOLGATE_MODEL_KEY_FILE", value_name = "FILE", help_heading = "Model")]
    key_file: Option<PathBuf>,
}

impl ModelArgs {
    /// The model, and its key, so that the caller can redact it.
    pub(crate) fn open(&self) -> Result<(Arc<dyn Model>, Option<ApiKey>)> {
        let model = self.model.as_deref().context(
            "No model was named. Use --model or TOOLGATE_MODEL, such as openai:gpt-5 or ollama:qwen3; `toolgate demo` \
             needs none.",
        )?;
        let provider = model.strip_prefix("json+").unwrap_or(model);
        let key = self.key(provider)?;
        let script = match provider.strip_prefix("scripted:") {
            Some(file) => Some(std::fs::read_to_string(file).with_context(|| format!("{file} can't be read"))?),
            None => None,
        };
        let access = ModelAccess { base_url: self.base_url.clone(), key: key.clone(), script };
        Ok((choose(model, &access)?, key))
    }

    /// The provider's own environment variable is used only when the key goes to that provider.
    fn key(&self, provider: &str) -> Result<Option<ApiKey>> {
        if let Some(file) = &self.key_file {
            let text = std::fs::read_to_string(file).with_context(|| format!("{} can't be read", file.display()))?;
            return ApiKey::new(&text).map(Some).with_context(|| format!("{} is empty", file.display()));
        }
        let of = |variable: &str| std::env::var(variable).ok().and_then(|text| ApiKey::new(&text));
        let own = match provider.split_once(':').map(|(provider, _)| provider) {
            _ if self.base_url.is_some() => None,
            Some("openai" | "chat") => of("OPENAI_API_KEY"),
            Some("anthropic") => of("ANTHROPIC_API_KEY"),
            _ => None,
        };
        Ok(of("TOOLGATE_MODEL_KEY").or(own))
    }
}
