//! The tools that configuration defines. One that can't be used costs itself, and a warning.

use std::sync::Arc;
use std::time::Duration;

use toolgate_config::{ConfiguredToolConfig, EffectsConfig, Settings};
use toolgate_contract::{Access, AnyTool, EffectBindings, ToolError};
use toolgate_runtime::Registry;
use toolgate_tools::{CommandTemplate, ConfiguredTool};

use crate::options::WarningSink;

/// Adds the configured tools to the others.
pub(crate) fn add_configured_tools(registry: &mut Registry, settings: &Settings, warn: &WarningSink) {
    for (name, config) in &settings.configured_tools {
        let added = configured_tool(name, config)
            .map_err(|error| error.message)
            .and_then(|tool| registry.add_checked(tool).map_err(|error| error.to_string()));
        if let Err(why) = added {
            warn(&format!("The tool `{name}` of your configuration is left out. {why}"));
        }
    }
}

fn configured_tool(name: &str, config: &ConfiguredToolConfig) -> Result<Arc<dyn AnyTool>, ToolError> {
    let template = match &config.shell {
        Some(line) => CommandTemplate::line_for_shell(line)?,
        None => CommandTemplate::words(&config.command)?,
    };
    let mut tool = ConfiguredTool::new(name, &config.description, template, config.schema.clone())?
        .with_risk(config.risk)
        .touching(effect_bindings(&config.effects));
    if let Some(workdir) = &config.workdir {
        tool = tool.in_directory(workdir);
    }
    if let Some(seconds) = config.timeout_seconds {
        tool = tool.within(Duration::from_secs(seconds));
    }
    Ok(Arc::new(tool))
}

/// What configuration says a call touches.
pub(crate) fn effect_bindings(effects: &EffectsConfig) -> EffectBindings {
    EffectBindings::default()
        .with_paths(Access::Read, &effects.read)
        .with_paths(Access::Write, &effects.write)
        .with_paths(Access::Delete, &effects.delete)
        .with_hosts(&effects.connect)
}
