//! `toolgate config`: shows what every setting comes to, and checks all configuration files.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_config::table::{effective, rows};
use toolgate_config::{ConfigError, ConfigFileError, ConfigLayer, EffectiveSetting, all_faults, contradictions};
use toolgate_contract::{Layer, counted};
use toolgate_policy::compile;
use toolgate_workspace::WorkspaceError;

use super::Invocation;
use crate::exit::Exit;
use crate::output::{outln, write_list};
use crate::terminal::{BOLD, DIM, RED, TextTable, YELLOW, paint, plain};

/// Show what every setting comes to, and check the configuration files.
///
/// Examples:
///   toolgate config show
///   toolgate config show limits
///   toolgate config show --set
///   toolgate config check
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Show the values that count, and where each comes from: a file, a flag, the environment, or the default.
    Show {
        /// Only settings whose names begin with this, such as `limits` or `limits.bytes`.
        name: Option<String>,
        /// Only settings that aren't at their defaults.
        #[arg(long)]
        set: bool,
    },
    /// Check every file: unknown names, wrong types, rules that can't be read or contradict each other. Exits with 2 if
    /// something is wrong.
    Check,
}

impl ConfigArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        match self.verb {
            ConfigVerb::Show { name, set } => show(invocation, name.as_deref(), set),
            ConfigVerb::Check => check(invocation),
        }
    }
}

fn show(invocation: &Invocation, name: Option<&str>, only_set: bool) -> Result<Exit> {
    let begins = |known: &str| {
        name.is_none_or(|name| known.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    if let Some(name) = name.filter(|_| !rows().iter().any(|row| begins(row.name))) {
        bail!("There is no setting `{name}`. `toolgate config show` lists all of them.");
    }
    let all = effective(&invocation.location.layers()?);
    let chosen: Vec<&EffectiveSetting> =
        all.iter().filter(|setting| begins(setting.name) && (!only_set || !setting.from.is_empty())).collect();
    if invocation.json {
        let entries: Vec<_> = chosen.iter().map(|setting| as_json(setting, invocation)).collect();
        write_list(&entries)?;
        return Ok(Exit::Ok);
    }
    let mut table = TextTable::new(&["setting", "value", "from"]);
    for setting in chosen {
        let (value, style) = match setting.value.is_null() {
            true => ("none".to_owned(), DIM),
            false => (plain(&setting.value.to_string()), if setting.from.is_empty() { DIM } else { BOLD }),
        };
        table.row([(setting.name.to_owned(), BOLD), (value, style), (origin(setting, invocation), DIM)]);
    }
    table.print();
    Ok(Exit::Ok)
}

/// Where a value comes from, and who else stated one that doesn't count.
fn origin(setting: &EffectiveSetting, invocation: &Invocation) -> String {
    let words = |sources: &[(Layer, String)]| {
        let words: Vec<String> = sources.iter().map(|source| source_words(setting, source, invocation)).collect();
        words.join(", ")
    };
    let from = if setting.from.is_empty() { "default".to_owned() } else { words(&setting.from) };
    match setting.ignored.is_empty() {
        true => from,
        false => format!("{from}; not counted: {}", words(&setting.ignored)),
    }
}

fn source_words(setting: &EffectiveSetting, (layer, source): &(Layer, String), invocation: &Invocation) -> String {
    match layer {
        Layer::Flags => invocation.location.flags.origin_of(setting.name).unwrap_or(source).to_owned(),
        _ => plain(source),
    }
}

fn as_json(setting: &EffectiveSetting, invocation: &Invocation) -> serde_json::Value {
    let sources = |sources: &[(Layer, String)]| -> Vec<serde_json::Value> {
        let source = |source: &(Layer, String)| json!({ "layer": source.0.to_string(), "source": source_words(setting, source, invocation) });
        sources.iter().map(source).collect()
    };
    json!({
        "name": setting.name, "value": setting.value, "is_default": setting.from.is_empty(),
        "from": sources(&setting.from), "not_counted": sources(&setting.ignored), "layers": setting.rule.name(),
    })
}

/// What a check found.
struct CheckedFiles {
    files: Vec<String>,
    faults: Vec<ConfigError>,
    warnings: Vec<String>,
}

fn check(invocation: &Invocation) -> Result<Exit> {
    let checked = check_all(invocation)?;
    let exit = if checked.faults.is_empty() { Exit::Ok } else { Exit::Usage };
    if invocation.json {
        let fault = |fault: &ConfigError| {
            json!({
                "file": fault.file, "line": fault.line, "column": fault.column, "message": fault.message,
                "hint": fault.hint,
            })
        };
        let faults: Vec<_> = checked.faults.iter().map(fault).collect();
        outln!("{}", json!({ "files": checked.files, "faults": faults, "warnings": checked.warnings }));
        return Ok(exit);
    }
    for fault in &checked.faults {
        outln!("{} {}", paint(RED, "fault:"), plain(&fault.to_string()));
    }
    for warning in &checked.warnings {
        outln!("{} {}", paint(YELLOW, "warning:"), plain(warning));
    }
    let files = match &checked.files[..] {
        [] => "There is no configuration file".to_owned(),
        files => format!("Checked {}", plain(&files.join(", "))),
    };
    let found = match checked.faults.len() {
        0 => "nothing is wrong".to_owned(),
        many => counted(many, "fault"),
    };
    outln!("{files}: {found}.");
    Ok(exit)
}

fn check_all(invocation: &Invocation) -> Result<CheckedFiles> {
    let (mut files, mut faults) = (Vec::new(), Vec::new());
    for (_, source, text) in invocation.location.config_files()? {
        faults.extend(all_faults(&text, &source));
        files.push(source);
    }
    if !faults.is_empty() {
        return Ok(CheckedFiles { files, faults, warnings: Vec::new() });
    }
    let layers = match invocation.location.layers() {
        Ok(layers) => layers,
        // The files can be read, so it is about a flag or the environment.
        Err(WorkspaceError::ConfigFile(ConfigFileError::Invalid(fault))) => {
            return Ok(CheckedFiles { files, faults: vec![fault], warnings: Vec::new() });
        }
        Err(error) => return Err(error.into()),
    };
    faults.extend(layers.iter().flat_map(contradictions));
    let (wrong, warnings) = faults_of_rules(layers);
    faults.extend(wrong);
    Ok(CheckedFiles { files, faults, warnings })
}

/// What is wrong with the meaning of rules and values: each rule that can't be used is taken out, and the rest is tried again.
fn faults_of_rules(mut layers: Vec<ConfigLayer>) -> (Vec<ConfigError>, Vec<String>) {
    let mut faults: Vec<ConfigError> = Vec::new();
    loop {
        let fault = match compile(layers.clone()) {
            Ok(compiled) => return (faults, compiled.warnings),
            Err(fault) => fault,
        };
        let mut rules: Vec<&mut Vec<_>> =
            layers.iter_mut().filter(|input| input.source == fault.file).map(|input| &mut input.config.rules).collect();
        let before: usize = rules.iter().map(|rules| rules.len()).sum();
        rules.iter_mut().for_each(|rules| rules.retain(|rule| fault.line.is_none() || rule.line != fault.line));
        let is_smaller = rules.iter().map(|rules| rules.len()).sum::<usize>() < before;
        faults.push(fault);
        if !is_smaller {
            return (faults, Vec::new());
        }
    }
}
