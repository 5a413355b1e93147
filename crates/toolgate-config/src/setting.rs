//! What a row of the [table](crate::table) is, and how each layer rule merges what the layers say.

use std::collections::BTreeMap;

use serde_json::Value;
use toolgate_contract::{AllowedTools, Durability, Layer, QuarantineMode, Tier};

use crate::config::{
    AfterChanges, Config, ConfiguredToolConfig, GrantDays, LspServerConfig, McpServerConfig, OverlayMode,
    PackageCacheMode, RootConfig, RuleConfig, StoreUrl, ToolLimitsConfig, UnknownCommandAction,
};
use crate::layer::ConfigLayer;
use crate::preset::Preset;

/// One setting: a row of the table.
#[derive(Debug)]
pub struct Setting<T> {
    /// Its name in a file, such as `limits.bytes`.
    pub name: &'static str,
    /// What holds when no layer says otherwise.
    pub default: T,
    /// Who may change it.
    pub rule: LayerRule,
    /// What it does, in one line.
    pub description: &'static str,
    /// What a layer says; none if it leaves the setting out.
    pub(crate) stated: fn(&Config) -> Option<T>,
}

/// How the layers of one setting become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerRule {
    /// The strongest layer that states it decides; weaker layers, and an untrusted workspace, only tighten.
    Tighten,
    /// As [`LayerRule::Tighten`], but a workspace never loosens it, trusted or not.
    TightenBeyondWorkspace,
    /// The strictest value that any layer states; an untrusted workspace never loosens the default.
    Strictest,
    /// The strongest layer that states it decides; an untrusted workspace has no say.
    Strongest,
    /// As [`LayerRule::Strongest`], but a workspace has no say, trusted or not.
    StrongestBeyondWorkspace,
    /// The entries of all layers count.
    AddUp,
    /// The entries of all layers count, but those of an untrusted workspace that would loosen are ignored.
    Approve,
    /// As [`LayerRule::Approve`], but only files count: flags and the environment have no say.
    ApproveInFiles,
    /// An entry has to be in the list of every layer that has one.
    Intersect,
}

impl LayerRule {
    /// Every rule, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Tighten,
        Self::TightenBeyondWorkspace,
        Self::Strictest,
        Self::Strongest,
        Self::StrongestBeyondWorkspace,
        Self::AddUp,
        Self::Approve,
        Self::ApproveInFiles,
        Self::Intersect,
    ];

    /// Its short name in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tighten => "tighten",
            Self::TightenBeyondWorkspace => "tighten, never the workspace",
            Self::Strictest => "strictest",
            Self::Strongest => "strongest",
            Self::StrongestBeyondWorkspace => "strongest, never the workspace",
            Self::AddUp => "add up",
            Self::Approve => "approve",
            Self::ApproveInFiles => "approve, files only",
            Self::Intersect => "intersect",
        }
    }

    /// What it means, for a person.
    pub fn description(self) -> &'static str {
        match self {
            Self::Tighten => {
                "The layer with the most authority that sets it decides. Layers with less authority can only make it \
                 stricter; for a number that means lower. An untrusted workspace can only make it stricter."
            }
            Self::TightenBeyondWorkspace => {
                "As *tighten*, but a workspace can never loosen it, trusted or not: what a machine needs is not for a \
                 repository to know."
            }
            Self::Strictest => {
                "The strictest value of all layers counts. An untrusted workspace can't go below the default."
            }
            Self::Strongest => {
                "The layer with the most authority that sets it decides. An untrusted workspace is ignored."
            }
            Self::StrongestBeyondWorkspace => {
                "As *strongest*, but a workspace is ignored, trusted or not: where your key and your money go is not for \
                 a repository to say."
            }
            Self::AddUp => "The entries of all layers count.",
            Self::Approve => {
                "The entries of all layers count, but what would loosen is ignored in an untrusted workspace."
            }
            Self::ApproveInFiles => "As *approve*, but only from files: flags and the environment are ignored.",
            Self::Intersect => "Every layer that has such a list narrows it: an entry has to be in all of them.",
        }
    }

    /// Whether a layer may loosen what it applies to.
    pub fn lets_loosen(self, input: &ConfigLayer) -> bool {
        match self {
            Self::TightenBeyondWorkspace | Self::StrongestBeyondWorkspace => input.layer != Layer::Workspace,
            Self::ApproveInFiles => input.may_loosen() && input.layer > Layer::Flags,
            Self::Tighten | Self::Strictest | Self::Strongest | Self::AddUp | Self::Approve | Self::Intersect => {
                input.may_loosen()
            }
        }
    }
}

/// What can be the value of a setting.
pub trait SettingValue: Clone + PartialEq {
    /// What the documentation calls its type.
    fn type_name() -> String;

    /// The value as a file has it.
    fn as_toml(&self) -> String;

    /// The value for people and programs; null if there is none. A secret isn't shown.
    fn shown(&self) -> Value {
        serde_json::from_str(&self.as_toml()).unwrap_or_default()
    }

    /// Whether it is a list without entries: then a layer says nothing.
    fn is_empty(&self) -> bool {
        false
    }

    /// Whether it allows more than the other does. Values without an order never do.
    fn is_looser_than(&self, _other: &Self) -> bool {
        false
    }

    /// What a warning calls a looser value that is ignored.
    fn looser_wording(&self, name: &str) -> String {
        format!("a milder `{name}`")
    }

    /// Takes in the entries of another layer. What isn't a list stays as it is.
    fn add(&mut self, _other: Self) {}
}

/// The last part of a setting's name: how its own section calls it.
fn field(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl<T: SettingValue> Setting<T> {
    /// What the layers come to, strongest first.
    pub(crate) fn merge(&self, layers: &[ConfigLayer], warnings: &mut Vec<String>) -> T {
        self.merge_as(layers, self.stated, warnings)
    }

    /// What the layers come to, where each says it in this way.
    pub(crate) fn merge_as(
        &self,
        layers: &[ConfigLayer],
        stated: impl Fn(&Config) -> Option<T>,
        warnings: &mut Vec<String>,
    ) -> T {
        self.merge_from(layers, stated, warnings).value
    }

    /// What the layers come to, and those that it comes from.
    pub(crate) fn merge_from<'a>(
        &self,
        layers: &'a [ConfigLayer],
        stated: impl Fn(&Config) -> Option<T>,
        warnings: &mut Vec<String>,
    ) -> MergedSetting<'a, T> {
        let stating = layers.iter().filter_map(|input| Some((input, stated(&input.config)?)));
        match self.rule {
            LayerRule::Tighten | LayerRule::TightenBeyondWorkspace => self.of_one(self.tighten(stating, warnings)),
            LayerRule::Strictest => self.of_one(self.strictest(stating, warnings)),
            LayerRule::Strongest | LayerRule::StrongestBeyondWorkspace => {
                self.of_one(self.strongest(stating, warnings))
            }
            LayerRule::AddUp => self.add_up(stating),
            LayerRule::Approve | LayerRule::ApproveInFiles | LayerRule::Intersect => {
                self.add_up(stating.filter(|(input, _)| self.rule.lets_loosen(input)))
            }
        }
    }

    /// The value of the layer that decided, or the default.
    fn of_one<'a>(&self, decided: Option<(&'a ConfigLayer, T)>) -> MergedSetting<'a, T> {
        match decided {
            Some((input, value)) => MergedSetting { value, from: vec![input] },
            None => MergedSetting { value: self.default.clone(), from: Vec::new() },
        }
    }

    fn tighten<'a>(
        &self,
        stating: impl Iterator<Item = (&'a ConfigLayer, T)>,
        warnings: &mut Vec<String>,
    ) -> Option<(&'a ConfigLayer, T)> {
        let mut merged: Option<(&ConfigLayer, T)> = None;
        for (input, wanted) in stating {
            let stronger = merged.as_ref().map(|(_, value)| value);
            let bound = stronger.or((!self.rule.lets_loosen(input)).then_some(&self.default));
            if bound.is_some_and(|bound| wanted.is_looser_than(bound)) {
                warn_once(warnings, input.ignored(&wanted.looser_wording(self.name), merged.is_some()));
                continue;
            }
            merged = Some((input, wanted));
        }
        merged
    }

    fn strictest<'a>(
        &self,
        stating: impl Iterator<Item = (&'a ConfigLayer, T)>,
        warnings: &mut Vec<String>,
    ) -> Option<(&'a ConfigLayer, T)> {
        let mut strictest: Option<(&ConfigLayer, T)> = None;
        for (input, wanted) in stating {
            if !self.rule.lets_loosen(input) && wanted.is_looser_than(&self.default) {
                warnings.push(input.ignored(&wanted.looser_wording(self.name), false));
            } else if strictest.as_ref().is_none_or(|(_, strictest)| strictest.is_looser_than(&wanted)) {
                strictest = Some((input, wanted));
            }
        }
        strictest
    }

    fn strongest<'a>(
        &self,
        stating: impl Iterator<Item = (&'a ConfigLayer, T)>,
        warnings: &mut Vec<String>,
    ) -> Option<(&'a ConfigLayer, T)> {
        let mut chosen: Option<(&ConfigLayer, T)> = None;
        for (input, wanted) in stating {
            match &chosen {
                None if self.rule.lets_loosen(input) => chosen = Some((input, wanted)),
                Some((_, chosen)) if *chosen == wanted => {}
                _ if self.rule.lets_loosen(input) => warnings
                    .push(format!("{}: `{}` is ignored: a layer with more authority set it.", input.source, self.name)),
                _ => warnings.push(input.ignored(&format!("`{}`", self.name), false)),
            }
        }
        chosen
    }

    fn add_up<'a>(&self, stating: impl Iterator<Item = (&'a ConfigLayer, T)>) -> MergedSetting<'a, T> {
        let mut merged = MergedSetting { value: self.default.clone(), from: Vec::new() };
        for (input, more) in stating {
            merged.value.add(more);
            merged.from.push(input);
        }
        merged
    }

    /// The row without its type, for whoever lists them all.
    pub fn row(&self) -> SettingRow {
        SettingRow {
            name: self.name,
            type_name: T::type_name(),
            default: self.default.as_toml(),
            rule: self.rule,
            description: self.description,
        }
    }
}

/// What the layers of one setting come to.
pub(crate) struct MergedSetting<'a, T> {
    pub(crate) value: T,
    /// The layers that the value comes from; none if it is the default.
    pub(crate) from: Vec<&'a ConfigLayer>,
}

/// A general limit is met again for every tool that has limits of its own; once is enough to say so.
fn warn_once(warnings: &mut Vec<String>, warning: String) {
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// A row of the table in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    /// Its name in a file, such as `limits.bytes`.
    pub name: &'static str,
    /// What its value has to be.
    pub type_name: String,
    /// What holds when no layer says otherwise, as a file would say it; empty if nothing does.
    pub default: String,
    /// Who may change it.
    pub rule: LayerRule,
    /// What it does, in one line.
    pub description: &'static str,
}

impl SettingValue for u64 {
    fn type_name() -> String {
        "whole number".into()
    }

    fn as_toml(&self) -> String {
        self.to_string()
    }

    fn is_looser_than(&self, other: &Self) -> bool {
        self > other
    }

    fn looser_wording(&self, name: &str) -> String {
        format!("a higher limit (`{} = {self}`)", field(name))
    }
}

impl SettingValue for GrantDays {
    fn type_name() -> String {
        "whole number, `\"unlimited\"`".into()
    }

    fn as_toml(&self) -> String {
        match self {
            Self::Days(days) => days.to_string(),
            Self::Unlimited => "\"unlimited\"".into(),
        }
    }

    fn is_looser_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Days(days), Self::Days(others)) => days > others,
            (Self::Unlimited, Self::Days(_)) => true,
            (_, Self::Unlimited) => false,
        }
    }

    fn looser_wording(&self, name: &str) -> String {
        format!("a higher limit (`{} = {}`)", field(name), self.as_toml())
    }
}

/// A list of words of which one is chosen: which there are, mildest first, and how a file writes them.
macro_rules! choices {
    ($($type:ty: $choices:expr, $written:expr;)*) => {$(
        impl SettingValue for $type {
            fn type_name() -> String {
                let written: Vec<String> = $choices.iter().map(|choice| format!("`{}`", choice.as_toml())).collect();
                written.join(", ")
            }

            fn as_toml(&self) -> String {
                let written: fn(&$type) -> String = $written;
                written(self)
            }

            fn is_looser_than(&self, other: &Self) -> bool {
                let rank = |wanted| $choices.iter().position(|choice| choice == wanted);
                rank(self) < rank(other)
            }
        }
    )*};
}

choices! {
    Preset: Preset::ALL, |preset| format!("\"{preset}\"");
    UnknownCommandAction: [Self::Confine, Self::Ask, Self::Deny], quoted;
    OverlayMode: [Self::Off, Self::On], quoted;
    AfterChanges: [Self::Off, Self::On], quoted;
    PackageCacheMode: [Self::Private, Self::Off], quoted;
    QuarantineMode: [Self::Off, Self::Report, Self::On], quoted;
    Durability: [Self::Os, Self::Sync], quoted;
    AllowedTools: [Self::Approval, Self::Ceiling], quoted;
    Tier: Self::CONFINING, |tier| format!("\"{}\"", tier.name());
}

/// A word as TOML and JSON both write it.
fn quoted(word: &impl serde::Serialize) -> String {
    serde_json::to_string(word).expect("a choice is a word")
}

/// Lists: what their entries are called. They start out empty.
macro_rules! lists {
    ($($type:ty: $entries:literal;)*) => {$(
        impl SettingValue for $type {
            fn type_name() -> String {
                $entries.into()
            }

            fn as_toml(&self) -> String {
                String::new()
            }

            fn shown(&self) -> Value {
                serde_json::to_value(self).unwrap_or_default()
            }

            fn is_empty(&self) -> bool {
                <$type>::is_empty(self)
            }

            fn add(&mut self, other: Self) {
                self.extend(other);
            }
        }
    )*};
}

lists! {
    Vec<String>: "list of strings";
    Vec<RuleConfig>: "`[[rules]]` tables";
    Vec<RootConfig>: "`[[roots]]` tables";
    BTreeMap<String, ToolLimitsConfig>: "`[limits.tools.NAME]` tables";
    BTreeMap<String, String>: "table of strings";
    BTreeMap<String, ConfiguredToolConfig>: "`[tools.NAME]` tables";
    BTreeMap<String, McpServerConfig>: "`[mcp.servers.NAME]` tables";
    BTreeMap<String, LspServerConfig>: "`[lsp.servers.NAME]` tables";
}

/// Settings that have no default: nothing holds until a layer states them.
macro_rules! optional {
    ($($type:ty: $name:literal;)*) => {$(
        impl SettingValue for Option<$type> {
            fn type_name() -> String {
                $name.into()
            }

            fn as_toml(&self) -> String {
                String::new()
            }

            fn shown(&self) -> Value {
                serde_json::to_value(self).unwrap_or_default()
            }
        }
    )*};
}

optional! {
    f64: "number";
    String: "string";
    StoreUrl: "URL";
    Vec<String>: "list of strings";
}
