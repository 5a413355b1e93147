//! `docs/configuration.md`, generated from the table, so that the reference can't fall behind the code.
#![allow(clippy::disallowed_methods, reason = "compares a file of the repository with what it should be")]

use std::fmt::Write;
use std::path::Path;

use crate::setting::{LayerRule, SettingRow};
use crate::table::{POSITIVE, rows};

const TEMPLATE: &str = include_str!("document/template.md");
const EXAMPLE: &str = include_str!("document/example.toml");
const EXAMPLES: &str = include_str!("document/examples.toml");

/// The name of a field, its type and what it does.
type FieldRow = (&'static str, &'static str, &'static str);

/// The fields of a rule.
const RULE_FIELDS: [FieldRow; 15] = [
    ("decision", "`\"allow\"`, `\"ask\"`, `\"deny\"`", "What the rule says. Required."),
    ("tool", "string", "A pattern over tool names."),
    (
        "risk",
        "`\"low\"`, `\"medium\"`, `\"high\"`",
        "A risk. An ask or deny includes every higher risk, an allow every lower one.",
    ),
    ("permission", "string", "A permission, such as `fs.delete`, `net.connect` or `git.write`."),
    ("path", "string", "A pattern over paths, relative to the workspace."),
    ("host", "string", "A domain, `*.domain`, an address or a range."),
    ("command", "list of strings", "The words that a command begins with. Each may be a pattern."),
    ("exact", "boolean", "With `command`: no further words may follow."),
    ("flags", "list of strings", "With `command`: the options that the command may have. Each may be a pattern."),
    ("workdir", "string", "With `command`: a pattern over the directory that the command runs in."),
    ("writes", "list of strings", "With `command`: patterns over everything that the command may change."),
    ("access", "list of `\"read\"`, `\"write\"`, `\"delete\"`", "With `path`: the kinds of access. All if left out."),
    ("reason", "string", "Why, in a sentence for the person and the model."),
    ("match", "list of strings", "Examples that the rule must match. Checked when the file is loaded."),
    ("no_match", "list of strings", "Examples that the rule must not match. Checked when the file is loaded."),
];

/// The fields of a root.
const ROOT_FIELDS: [FieldRow; 2] = [
    ("path", "string", "An absolute path without `.` and `..`, not a sensitive one. Required."),
    ("access", "`\"read\"`, `\"write\"`", "What tools may do there. `\"read\"` if left out."),
];

/// The fields of a tool of the user's own.
const TOOL_FIELDS: [FieldRow; 8] = [
    ("description", "string", "What it does and when to use it, for the model. Required."),
    (
        "command",
        "list of strings",
        "The program and its arguments, without a shell. `{NAME}` is an argument of the call.",
    ),
    (
        "shell",
        "string",
        "A line for bash, in place of `command`. `{NAME}` is an argument of the call, quoted as one word.",
    ),
    ("schema", "table", "The JSON Schema of the arguments, an object. Without it there are none."),
    ("risk", "`\"low\"`, `\"medium\"`, `\"high\"`", "How much harm it can do. `\"medium\"` if left out."),
    ("workdir", "string", "The directory that it runs in, relative to the workspace."),
    ("timeout_seconds", "whole number", "Seconds until it is stopped. 120 if left out."),
    ("effects", "table", "What a call touches beside what its command line says; see below."),
];

/// The fields of an MCP server.
const SERVER_FIELDS: [FieldRow; 15] = [
    ("command", "list of strings", "The program and its arguments, without a shell. This or `url` is required."),
    ("url", "string", "The address of a server elsewhere: https, or http for this machine."),
    (
        "bearer",
        "string",
        "With `url`: where a token for it is, as `env:NAME` or `file:/PATH`. Without it, `toolgate mcp login` gets one.",
    ),
    (
        "protocol",
        "`\"auto\"`, `\"handshake\"`, `\"stateless\"`",
        "Which protocol version is spoken: until 2025-11-25, since 2026-07-28, or what works. `\"auto\"` if left out.",
    ),
    ("env", "table of strings", "Variables that it has, as they are."),
    ("secrets", "table of strings", "Variables that it has, each as `env:NAME` or `file:/PATH`, where its value is."),
    ("workspace", "`\"read\"`, `\"write\"`", "What it may do in the workspace. `\"read\"` if left out."),
    (
        "directory",
        "`\"home\"`, `\"workspace\"`",
        "Where it starts. Its own home if left out: in the workspace, many programs load what a repository has.",
    ),
    (
        "roots",
        "list of strings",
        "Directories beside the workspace that it may read, such as the one with its own files.",
    ),
    (
        "hosts",
        "list of strings",
        "Hosts that it may connect to, or that may be reached for it beside the one of its `url`. None if left out.",
    ),
    (
        "timeout_seconds",
        "whole number",
        "Seconds without a sign of life after which a call of one of its tools is given up. 120 if left out.",
    ),
    ("idle_seconds", "whole number", "Seconds without a call after which it is stopped. 600 if left out."),
    (
        "memory_bytes",
        "whole number",
        "Bytes of memory that it and everything that it starts may use together; where no memory cgroup can be made, that each of its processes may use. 4 GiB if left out.",
    ),
    (
        "sampling",
        "boolean",
        "Whether it may ask the model of the client that calls it (`sampling/createMessage`). Off if left out.",
    ),
    ("effects", "tables", "`[mcp.servers.NAME.effects.TOOL]`: what a call of that tool touches; see above."),
];

/// The fields of a language server.
const LANGUAGE_SERVER_FIELDS: [FieldRow; 8] = [
    ("command", "list of strings", "The program and its arguments, without a shell. Required."),
    (
        "files",
        "table of strings",
        "The endings of the files that it understands, each with the language's id: `{ zig = \"zig\" }`. Those of the built-in server of that name if left out.",
    ),
    (
        "markers",
        "list of strings",
        "Names of files that a project's directory has. The nearest above a file is the project.",
    ),
    ("env", "table of strings", "Variables that it has, as they are. `{home}` in them is its own directory."),
    ("settings", "table", "What it is answered when it asks for its configuration."),
    ("options", "table", "Its `initializationOptions`."),
    ("install", "string", "The command that installs it, for messages."),
    ("idle_seconds", "whole number", "Seconds without a question after which it is stopped. 600 if left out."),
];

/// The fields of stated effects.
const EFFECT_FIELDS: [FieldRow; 4] = [
    ("read", "list of strings", "Files and directories that it reads."),
    ("write", "list of strings", "Files and directories that it creates or changes."),
    ("delete", "list of strings", "Files and directories that it deletes."),
    ("connect", "list of strings", "Hosts that it connects to, as `HOST` or `HOST:PORT`; 443 if the port is left out."),
];

/// The whole document.
fn document() -> String {
    let legend: String =
        LayerRule::ALL.iter().map(|rule| format!("| {} | {} |\n", rule.name(), rule.description())).collect();
    TEMPLATE
        .replace("{example}", EXAMPLE.trim_end())
        .replace("{settings}", settings().trim_end())
        .replace("{layer_rules}", format!("| word | meaning |\n|---|---|\n{legend}").trim_end())
        .replace("{rule_fields}", fields(&RULE_FIELDS).trim_end())
        .replace("{root_fields}", fields(&ROOT_FIELDS).trim_end())
        .replace("{tool_fields}", fields(&TOOL_FIELDS).trim_end())
        .replace("{server_fields}", fields(&SERVER_FIELDS).trim_end())
        .replace("{language_server_fields}", fields(&LANGUAGE_SERVER_FIELDS).trim_end())
        .replace("{effect_fields}", fields(&EFFECT_FIELDS).trim_end())
}

fn settings() -> String {
    let head = "| setting | type | default | layers | meaning | example |\n|---|---|---|---|---|---|\n";
    let mut text = head.to_owned();
    for row in rows() {
        let example = example(&row);
        let SettingRow { name, type_name, default, rule, description } = row;
        let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
        let least = if POSITIVE.iter().any(|setting| setting.name == name) { ", 1 or more" } else { "" };
        let rule = rule.name();
        writeln!(text, "| `{name}` | {type_name}{least} | {default} | {rule} | {description} | `{name} = {example}` |")
            .expect("a string takes any text");
    }
    text
}

/// A value for a setting, as a file would say it: the one of the list of examples, or the default.
fn example(row: &SettingRow) -> String {
    let stated = EXAMPLES.lines().filter_map(|line| line.split_once(" = "));
    let stated = stated.filter(|(name, _)| *name == row.name).map(|(_, value)| value.to_owned()).next();
    stated.unwrap_or_else(|| row.default.clone())
}

fn fields(fields: &[FieldRow]) -> String {
    let rows = fields.iter().map(|(name, kind, meaning)| format!("| `{name}` | {kind} | {meaning} |\n"));
    rows.fold("| field | type | meaning |\n|---|---|---|\n".into(), |text, row| text + &row)
}

mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Config;

    /// Set to write the document instead of comparing it.
    const BLESS: &str = "BLESS";

    #[test]
    fn the_reference_of_all_settings_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        if std::env::var_os(BLESS).is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, document()).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            written == document(),
            "docs/configuration.md differs from the table of settings. \
             Look at the change and write it with: {BLESS}=1 cargo test -p toolgate-config document"
        );
    }

    #[test]
    fn the_example_can_be_used() {
        Config::parse(EXAMPLE, "example.toml").unwrap_or_else(|fault| panic!("{fault}"));
    }

    #[test]
    fn every_setting_has_an_example_that_the_parser_takes_and_no_other_is_listed() {
        for row in rows() {
            let text = format!("{} = {}", row.name, example(&row));
            assert!(!example(&row).is_empty(), "`{}` needs a line in document/examples.toml", row.name);
            Config::parse(&text, "examples.toml").unwrap_or_else(|fault| panic!("{text}: {fault}"));
        }
        Config::parse(EXAMPLES, "examples.toml").unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// What the parser says to a file that has a name nobody knows: the names it does know, or none if this is no table.
    fn known_names(text: &str) -> Option<BTreeSet<String>> {
        let fault = toml::from_str::<Config>(text).unwrap_err();
        let names = fault.message().strip_prefix("unknown field `nobody_knows`, ")?;
        Some(names.split('`').skip(1).step_by(2).map(str::to_owned).collect())
    }

    #[test]
    fn every_setting_that_is_parsed_has_a_row_and_every_row_is_parsed() {
        let mut parsed = BTreeSet::new();
        for section in known_names("nobody_knows = 1").expect("the file itself is a table") {
            match known_names(&format!("{section}.nobody_knows = 1")) {
                Some(names) => parsed.extend(names.into_iter().map(|name| format!("{section}.{name}"))),
                None => drop(parsed.insert(section)),
            }
        }
        let documented: BTreeSet<String> = rows().iter().map(|row| row.name.to_owned()).collect();
        assert_eq!(documented, parsed);
        assert_eq!(rows().len(), documented.len(), "a name has two rows");
    }

    #[test]
    fn every_field_of_a_table_that_is_parsed_is_documented() {
        let names = |fields: &[FieldRow]| fields.iter().map(|(name, ..)| (*name).to_owned()).collect();
        assert_eq!(known_names("[[rules]]\nnobody_knows = 1"), Some(names(&RULE_FIELDS)));
        assert_eq!(known_names("[[roots]]\nnobody_knows = 1"), Some(names(&ROOT_FIELDS)));
        assert_eq!(known_names("[tools.any]\nnobody_knows = 1"), Some(names(&TOOL_FIELDS)));
        assert_eq!(known_names("[mcp.servers.any]\nnobody_knows = 1"), Some(names(&SERVER_FIELDS)));
        assert_eq!(known_names("[lsp.servers.any]\nnobody_knows = 1"), Some(names(&LANGUAGE_SERVER_FIELDS)));
        assert_eq!(known_names("[tools.any.effects]\nnobody_knows = 1"), Some(names(&EFFECT_FIELDS)));
        let of_tools = known_names("[limits.tools.any]\nnobody_knows = 1").unwrap();
        let general: BTreeSet<String> = known_names("[limits]\nnobody_knows = 1").unwrap();
        assert_eq!(of_tools.into_iter().chain(["tools".to_owned()]).collect::<BTreeSet<_>>(), general);
    }

    #[test]
    fn every_documented_default_and_choice_is_one_that_the_parser_takes() {
        for row in rows() {
            let choices = row.type_name.split('`').skip(1).step_by(2).filter(|choice| choice.starts_with('"'));
            for value in choices.chain(Some(row.default.as_str()).filter(|default| !default.is_empty())) {
                let text = format!("{} = {value}", row.name);
                Config::parse(&text, "table").unwrap_or_else(|fault| panic!("{text}: {fault}"));
            }
        }
    }
}
