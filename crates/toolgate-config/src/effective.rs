//! What every setting comes to, and where that comes from.

use serde_json::Value;

use crate::layer::ConfigLayer;
use crate::setting::{LayerRule, Setting, SettingValue};
use toolgate_contract::Layer;

/// What a setting comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveSetting {
    /// Its name in a file, such as `limits.bytes`.
    pub name: &'static str,
    /// The value that counts; null if there is none.
    pub value: Value,
    /// The layers that it comes from, strongest first, and how messages call each. Empty if it is the default.
    pub from: Vec<(Layer, String)>,
    /// Layers that state another value, which doesn't count.
    pub ignored: Vec<(Layer, String)>,
    /// Who may change it.
    pub rule: LayerRule,
}

impl<T: SettingValue> Setting<T> {
    /// What the layers come to, strongest first, and which of them decided.
    pub(crate) fn effective(&self, layers: &[ConfigLayer]) -> EffectiveSetting {
        let stated = |input: &&ConfigLayer| (self.stated)(&input.config).is_some_and(|value| !value.is_empty());
        let merged = self.merge_from(layers, self.stated, &mut Vec::new());
        let told = |input: &ConfigLayer| (input.layer, input.source.clone());
        let is_deciding = |input: &ConfigLayer| merged.from.iter().any(|from| std::ptr::eq(*from, input));
        EffectiveSetting {
            name: self.name,
            value: merged.value.shown(),
            from: layers.iter().filter(stated).filter(|input| is_deciding(input)).map(told).collect(),
            ignored: layers.iter().filter(stated).filter(|input| !is_deciding(input)).map(told).collect(),
            rule: self.rule,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_contract::Layer;

    use crate::table::effective;
    use crate::testing::{layer, untrusted};

    #[test]
    fn each_setting_says_what_it_is_and_who_said_so() {
        let layers = [
            layer(
                Layer::User,
                "preset = 'workspace'\ntools.deny = ['fetch']\nlimits.lines = 10\nstore.url = 'postgres://u:p@h/d'",
            ),
            untrusted("tools.deny = ['shell']\nlimits.lines = 5\nlimits.bytes = 999999999\nundo.quota_bytes = 7"),
            layer(Layer::Flags, "preset = 'read-only'"),
        ];
        let all = effective(&layers);
        let of = |name: &str| all.iter().find(|setting| setting.name == name).unwrap();
        let layers = |from: &[(Layer, String)]| from.iter().map(|(layer, _)| *layer).collect::<Vec<_>>();
        for (name, value, from, ignored) in [
            ("preset", json!("read-only"), vec![Layer::Flags], vec![Layer::User]),
            ("tools.deny", json!(["fetch", "shell"]), vec![Layer::User, Layer::Workspace], vec![]),
            ("limits.lines", json!(5), vec![Layer::Workspace], vec![Layer::User]),
            ("limits.bytes", json!(51_200), vec![], vec![Layer::Workspace]),
            ("undo.quota_bytes", json!(1 << 30), vec![], vec![Layer::Workspace]),
            ("store.url", json!("***"), vec![Layer::User], vec![]),
            ("model.default", json!(null), vec![], vec![]),
            ("approvals.always_days", json!(30), vec![], vec![]),
        ] {
            let found = of(name);
            assert_eq!((&found.value, layers(&found.from), layers(&found.ignored)), (&value, from, ignored), "{name}");
        }
    }
}
