//! What is known about programs: the tables in `knowledge/`, parsed once. A form describes the operands and flags of a
//! program or subcommand; [`super::arguments`] tells them apart.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;

use super::options::KnownOptions;
use super::roles::{FlagRole, OperandRole, OperandRoles};
use super::simple_command::Need;

/// The tables, by name.
const TABLES: &[(&str, &str)] = &[
    ("files", include_str!("knowledge/files.toml")),
    ("text", include_str!("knowledge/text.toml")),
    ("search", include_str!("knowledge/search.toml")),
    ("git", include_str!("knowledge/git.toml")),
    ("build", include_str!("knowledge/build.toml")),
    ("network", include_str!("knowledge/network.toml")),
    ("system", include_str!("knowledge/system.toml")),
    ("shell", include_str!("knowledge/shell.toml")),
    ("interpreters", include_str!("knowledge/interpreters.toml")),
    ("wrappers", include_str!("knowledge/wrappers.toml")),
];

/// One form of a program, as written in a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandForm {
    programs: Vec<String>,
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
    program: String,
    pub(super) flags: FlagTable,
    #[serde(default)]
    pub(super) harmless: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramTable {
    #[serde(default)]
    form: Vec<CommandForm>,
    #[serde(default)]
    globals: Vec<GlobalFlags>,
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

/// All known forms, by program.
pub(super) struct ProgramCatalog {
    programs: HashMap<&'static str, Vec<KnownForm>>,
    globals: HashMap<&'static str, &'static GlobalFlags>,
}

static TABLES_READ: LazyLock<Vec<ProgramTable>> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| {
        toml::from_str(text).unwrap_or_else(|fault| panic!("the built-in table `{name}` is tested: {fault}"))
    };
    TABLES.iter().map(read).collect()
});

pub(super) static KNOWLEDGE: LazyLock<ProgramCatalog> = LazyLock::new(|| ProgramCatalog::new(&TABLES_READ));

impl ProgramCatalog {
    fn new(tables: &'static [ProgramTable]) -> Self {
        let mut by_name: BTreeMap<&'static str, Vec<&'static CommandForm>> = BTreeMap::new();
        for form in tables.iter().flat_map(|table| &table.form) {
            form.programs.iter().for_each(|name| by_name.entry(name).or_default().push(form));
        }
        let mut programs: HashMap<_, Vec<KnownForm>> = HashMap::new();
        for (name, forms) in &by_name {
            let mut words = name.split_whitespace();
            let program = words.next().unwrap_or_default();
            let words: Vec<&str> = words.collect();
            for form in forms {
                let (words, alike, options) = (words.clone(), forms.clone(), OnceLock::new());
                programs.entry(program).or_default().push(KnownForm { words, form, name, alike, options });
            }
        }
        // More words mean more knowledge; a stable sort keeps the tables' order among equals.
        programs.values_mut().for_each(|forms| forms.sort_by_key(|known| std::cmp::Reverse(known.words.len())));
        let globals = tables.iter().flat_map(|table| &table.globals);
        Self { programs, globals: globals.map(|globals| (globals.program.as_str(), globals)).collect() }
    }

    pub(super) fn globals(&self, program: &str) -> Option<&'static GlobalFlags> {
        self.globals.get(program).copied()
    }

    /// Every form under each of its names.
    pub(super) fn all(&self) -> impl Iterator<Item = &KnownForm> {
        self.programs.values().flatten()
    }

    /// The forms of a program, those with most words first.
    pub(super) fn forms(&self, program: &str) -> &[KnownForm] {
        self.programs.get(program).map_or(&[], Vec::as_slice)
    }
}

/// Every example of the tables: a command and the expected analysis.
pub(super) fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    let forms = TABLES_READ.iter().flat_map(|table| &table.form);
    forms.flat_map(|form| form.examples.iter().map(|(command, expected)| (command.as_str(), expected.as_str())))
}

/// How many forms there are: each program or subcommand counts.
#[cfg(test)]
pub(super) fn count() -> usize {
    TABLES_READ.iter().flat_map(|table| &table.form).map(|form| form.programs.len()).sum()
}
