//! What this crate's tests share: a layer and what layers come to, in one line each.

use std::cmp::Reverse;

use toolgate_contract::Layer;

use crate::{Config, ConfigError, ConfigLayer, Settings, merge};

/// A layer with this text; its source is called after it.
pub(crate) fn layer(layer: Layer, text: &str) -> ConfigLayer {
    let source = format!("{layer}.toml");
    ConfigLayer { layer, trusted: true, config: Config::parse(text, &source).unwrap(), source }
}

/// The workspace's layer before anyone trusts it.
pub(crate) fn untrusted(text: &str) -> ConfigLayer {
    ConfigLayer { trusted: false, ..layer(Layer::Workspace, text) }
}

/// The settings and warnings of layers in any order, where `.ssh` is sensitive.
pub(crate) fn try_settings(mut layers: Vec<ConfigLayer>) -> Result<(Settings, Vec<String>), ConfigError> {
    layers.sort_by_key(|input| Reverse(input.layer));
    let mut warnings = Vec::new();
    let settings = merge(&layers, &|path| path.contains(".ssh"), &mut warnings)?;
    Ok((settings, warnings))
}

pub(crate) fn settings(layers: Vec<ConfigLayer>) -> (Settings, Vec<String>) {
    try_settings(layers).unwrap_or_else(|fault| panic!("{fault}"))
}
