//! What is known about programs: the tables in `knowledge/`. A form describes the operands and flags of a program or
//! subcommand; [`super::arguments`] tells them apart. The build makes an index of them by name (`build.rs`), and a form
//! is parsed when a command first names it: most never are.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;

use super::options::KnownOptions;
use super::roles::{FlagRole, OperandRole, OperandRoles};
use super::simple_command::Need;

mod tables {
    //! The tables as the build compiled them: `FORM_TEXTS`, `FORM_NAMES` and `GLOBAL_TEXTS`, sorted by name.
    include!(concat!(env!("OUT_DIR"), "/forms.rs"));
}

use tables::{FORM_NAMES, FORM_TEXTS, GLOBAL_TEXTS};

/// One form of a program, as written in a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandForm {
    pub(super) kind: FormKind,
    #[serde(default)]
    pub(super) operands: OperandRoles,
    #[serde(default)]
    pub(super) flags: FlagTable,
    #[serde(default)]
    pub(super) needs: Vec<Need>,
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    pub(super) when: Option<OperandCondition>,
    #[serde(default)]
    pub(super) with: Vec<String>,
    #[serde(default)]
    pub(super) without: Vec<String>,
    /// The flags are an allow-list: some other option does more than print.
    #[serde(default)]
    pub(super) strict: bool,
    /// No option of it does more than print, whatever its name.
    #[serde(default)]
    pub(super) lenient: bool,
    /// `@FILE` among its arguments stands for the content of that file.
    #[serde(default)]
    pub(super) response_files: bool,
    #[serde(default)]
    pub(super) long: bool,
    #[serde(default)]
    pub(super) numbers: bool,
    /// What happens to the directory that it runs in.
    pub(super) here: Option<OperandRole>,
    /// All arguments are operands: those of `test`, whose operators look like options.
    #[serde(default)]
    pub(super) quiet: bool,
    /// `+x` is an option too.
    #[serde(default)]
    pub(super) plus: bool,
    /// Options come only before operands.
    #[serde(default)]
    pub(super) options_first: bool,
    pub(super) reads_stdin_as: Option<StdinRole>,
    #[serde(default)]
    pub(super) harmless: Vec<String>,
    #[serde(default)]
    examples: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FormKind {
    /// Everything that it does is in its effects.
    Known,
    /// It runs code that can't be analyzed.
    Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OperandCondition {
    /// Only without operands.
    Bare,
    /// Only with operands.
    Operands,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StdinRole {
    /// A shell script, which can be analyzed.
    Script,
    /// Code in another language.
    Code,
}

/// Flags with their meaning. In the tables, names with the same meaning share a key: `"-o --output" = "write"`.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<String, FlagRole>")]
pub(super) struct FlagTable(BTreeMap<String, FlagRole>);

impl From<BTreeMap<String, FlagRole>> for FlagTable {
    fn from(written: BTreeMap<String, FlagRole>) -> Self {
        let single = |(names, role): (String, FlagRole)| {
            names.split_whitespace().map(|name| (name.to_owned(), role)).collect::<Vec<_>>()
        };
        Self(written.into_iter().flat_map(single).collect())
    }
}

impl FlagTable {
    pub(super) fn role(&self, name: &str) -> Option<FlagRole> {
        self.0.get(name).copied()
    }

    /// The names of all flags.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, FlagRole)> {
        self.0.iter().map(|(name, role)| (name.as_str(), *role))
    }
}

impl CommandForm {
    /// The options that decide whether this form is meant.
    pub(super) fn conditions(&self) -> impl Iterator<Item = &str> {
        self.with.iter().chain(&self.without).map(String::as_str)
    }
}

/// Flags before a subcommand.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GlobalFlags {
    pub(super) flags: FlagTable,
    #[serde(default)]
    pub(super) harmless: Vec<String>,
}

/// One form under one of its names.
pub(super) struct KnownForm {
    /// The words after the program that name it.
    pub(super) words: Vec<&'static str>,
    pub(super) form: &'static CommandForm,
    /// The entire name, and all forms that have it.
    pub(super) name: &'static str,
    alike: Vec<&'static CommandForm>,
    options: OnceLock<KnownOptions>,
}

impl KnownForm {
    /// Its options, gathered when they are first needed: most programs never are.
    pub(super) fn options(&self) -> &KnownOptions {
        self.options.get_or_init(|| KnownOptions::new(self.name, self.form, &self.alike))
    }
}

/// All known forms, each parsed when it is first needed.
pub(super) struct ProgramCatalog {
    /// The forms of the tables, in their order.
    forms: Vec<OnceLock<CommandForm>>,
    /// By program: the forms under each of their names.
    programs: HashMap<&'static str, OnceLock<Vec<KnownForm>>>,
    globals: HashMap<&'static str, OnceLock<GlobalFlags>>,
}

pub(super) static KNOWLEDGE: LazyLock<ProgramCatalog> = LazyLock::new(|| ProgramCatalog {
    forms: FORM_TEXTS.iter().map(|_| OnceLock::new()).collect(),
    programs: FORM_NAMES.iter().map(|(name, _)| (program_of(name), OnceLock::new())).collect(),
    globals: GLOBAL_TEXTS.iter().map(|(program, _)| (*program, OnceLock::new())).collect(),
});

/// The first word of a form's name.
fn program_of(name: &'static str) -> &'static str {
    name.split_whitespace().next().unwrap_or_default()
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|fault| panic!("the built-in tables are tested: {fault} in {text}"))
}

impl ProgramCatalog {
    pub(super) fn globals(&'static self, program: &str) -> Option<&'static GlobalFlags> {
        let (name, slot) = self.globals.get_key_value(program)?;
        let text = || GLOBAL_TEXTS[GLOBAL_TEXTS.partition_point(|(listed, _)| listed < name)].1;
        Some(slot.get_or_init(|| parse(text())))
    }

    /// Every form under each of its names.
    pub(super) fn all(&'static self) -> impl Iterator<Item = &'static KnownForm> {
        self.programs.keys().flat_map(|program| self.forms(program))
    }

    /// The forms of a program, those with most words first.
    pub(super) fn forms(&'static self, program: &str) -> &'static [KnownForm] {
        let Some((program, slot)) = self.programs.get_key_value(program) else { return &[] };
        slot.get_or_init(|| self.known_forms(program))
    }

    fn known_forms(&'static self, program: &str) -> Vec<KnownForm> {
        let start = FORM_NAMES.partition_point(|(name, _)| *name < program);
        let names = FORM_NAMES[start..].iter().take_while(|(name, _)| name.starts_with(program));
        let mut known = Vec::new();
        for (name, indexes) in names.filter(|(name, _)| program_of(name) == program) {
            let alike: Vec<_> = indexes.iter().map(|index| self.form(*index)).collect();
            for form in &alike {
                let words = name.split_whitespace().skip(1).collect();
                known.push(KnownForm { words, form, name, alike: alike.clone(), options: OnceLock::new() });
            }
        }
        // More words mean more knowledge; a stable sort keeps the tables' order among equals.
        known.sort_by_key(|known| std::cmp::Reverse(known.words.len()));
        known
    }

    fn form(&'static self, index: usize) -> &'static CommandForm {
        self.forms[index].get_or_init(|| parse(FORM_TEXTS[index]))
    }
}

/// Every example of the tables: a command and the expected analysis.
pub(super) fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    let forms = (0..FORM_TEXTS.len()).map(|index| KNOWLEDGE.form(index));
    forms.flat_map(|form| form.examples.iter().map(|(command, expected)| (command.as_str(), expected.as_str())))
}

/// How many forms there are: each program or subcommand counts.
#[cfg(test)]
pub(super) fn count() -> usize {
    FORM_NAMES.iter().map(|(_, forms)| forms.len()).sum()
}
