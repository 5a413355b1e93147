//! Reads the layers of configuration and merges them into one set of settings.
//!
//! A [`ConfigLayer`] is one file, or the flags of one run, as written. [`ConfigPaths`] finds and reads the files;
//! [`merge()`] makes [`Settings`] out of all layers; the [`table`] says for every setting its name, its default and
//! who may change it. What a rule means is not known here: `toolgate_policy::compile` turns the same layers into a policy.
//!
//! # How layers merge
//!
//! The most authoritative layer that names a preset chooses it; weaker layers only tighten, and so it goes for limits,
//! roots and most other settings ([`LayerRule`] has all the ways there are). A workspace that isn't trusted only ever
//! tightens: what would loosen is ignored, with a warning each.

mod all_faults;
mod config;
mod contradictions;
#[cfg(test)]
mod document;
mod effective;
mod error;
mod files;
mod flags;
mod layer;
mod preset;
mod setting;
mod settings;
pub mod table;
#[cfg(test)]
mod testing;
pub mod trust;

pub use all_faults::all_faults;
pub use config::{
    AfterChanges, ApprovalsConfig, AuditConfig, CachesConfig, CommandsConfig, Config, ConfiguredToolConfig,
    EffectsConfig, FetchConfig, GrantDays, LimitsConfig, LspConfig, LspServerConfig, McpConfig, McpServerConfig,
    NetworkConfig, OverlayMode, PackageCacheMode, ProcessesConfig, RedactConfig, RootConfig, RuleConfig, SecretSource,
    SensitiveConfig, ServerDirectory, ServerProtocol, SkillsConfig, StoreConfig, StoreUrl, ToolLimitsConfig,
    ToolsConfig, UndoConfig, UnknownCommandAction,
};
pub use contradictions::contradictions;
pub use effective::EffectiveSetting;
pub use error::{ConfigError, ConfigFault};
pub use files::{ConfigFileError, ConfigPaths, WORKSPACE_FILE, read_optional};
pub use flags::FlagLayer;
pub use layer::{ConfigLayer, UNTIL_TRUSTED};
pub use preset::{Preset, choose_preset};
pub use setting::{LayerRule, Setting, SettingRow, SettingValue};
pub use settings::{CallLimits, CommandLimits, LspSettings, ModelSettings, ProcessLimits, Settings, merge};
