//! Arguments under a dialect's own names. A native error names native arguments; whoever speaks a dialect knows them by other names.

use toolgate_contract::ToolError;

use crate::dialect::DialectTool;
use crate::parameter::{Parameter, ParameterKind};

/// Native arguments, and what dialects call the same.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("find", &["old_string", "oldString"]),
    ("replace", &["new_string", "newString"]),
    ("all", &["replace_all", "replaceAll", "allow_multiple"]),
    ("literal", &["fixed_strings"]),
    ("path", &["file_path", "filePath", "notebook_path", "dir_path", "target_directory"]),
    ("pattern", &["glob_pattern", "name_pattern"]),
    ("patch", &["input", "patchText", "patch_text"]),
    ("offset", &["start_line"]),
    ("limit", &["end_line"]),
];

/// Native switches that a remark proposes to set, each with what a tool that has a parameter of this name calls the same.
const SWITCHES: &[(&str, &[(&str, &str)])] = &[
    (
        "`gitignore` to false",
        &[
            ("gitignore", "`gitignore` to false"),
            ("respect_git_ignore", "`respect_git_ignore` to false"),
            ("no_ignore", "`no_ignore` to true"),
        ],
    ),
    ("`hidden` to true", &[("hidden", "`hidden` to true"), ("no_ignore", "`no_ignore` to true")]),
];

/// What is around such a proposal.
const SET: &str = ": set ";
const TO_SEE: &str = " to see them.";

/// What comes before an argument that could be set instead.
const OR_SET: &str = ", or set `";

impl DialectTool {
    /// The error with this tool's names for the arguments of the native one.
    pub(crate) fn with_own_arguments(&self, error: ToolError) -> ToolError {
        let hint = error.hint.as_deref().map(|hint| self.own_arguments(hint));
        ToolError { message: self.own_arguments(&error.message), hint, ..error }
    }

    /// The text with this tool's names: each in the first place alone, since lines of a file may follow. An argument that this tool
    /// doesn't have isn't proposed.
    fn own_arguments(&self, text: &str) -> String {
        let mut said = self.without_foreign_arguments(text);
        for (native, others) in OTHER_NAMES {
            let own = others.iter().find(|name| has(self.parameters, name));
            if let Some(own) = own.filter(|_| !has(self.parameters, native)) {
                said = said.replacen(&format!("`{native}`"), &format!("`{own}`"), 1);
            }
        }
        said
    }

    /// A remark that proposes to set native switches, with this tool's own. Those that it doesn't have aren't proposed.
    pub(crate) fn own_switches(&self, remark: &str) -> String {
        let proposal = remark.split_once(SET).and_then(|(before, rest)| Some((before, rest.strip_suffix(TO_SEE)?)));
        let Some((before, switches)) = proposal else { return remark.to_owned() };
        let own = |native: &str| {
            let (_, names) = SWITCHES.iter().find(|(switch, _)| *switch == native)?;
            names.iter().find(|(parameter, _)| has(self.parameters, parameter)).map(|(_, own)| *own)
        };
        let mut known: Vec<&str> = switches.split(" or ").filter_map(own).collect();
        known.dedup();
        if known.is_empty() { format!("{before}.") } else { format!("{before}{SET}{}{TO_SEE}", known.join(" or ")) }
    }

    /// The text without the proposal to set what this tool has under no name.
    fn without_foreign_arguments(&self, text: &str) -> String {
        let Some((before, rest)) = text.split_once(OR_SET) else { return text.to_owned() };
        let Some((argument, after)) = rest.split_once('`') else { return text.to_owned() };
        let others = OTHER_NAMES.iter().find(|(native, _)| *native == argument).map_or(&[][..], |(_, others)| others);
        let is_known = others.iter().chain([&argument]).any(|name| has(self.parameters, name));
        match after.split_once('.').filter(|_| !is_known) {
            Some((_, next)) => format!("{before}.{next}"),
            None => text.to_owned(),
        }
    }
}

/// Whether there is a parameter of this name, at the top or inside of another.
fn has(parameters: &[Parameter], name: &str) -> bool {
    parameters.iter().any(|parameter| {
        parameter.name == name
            || match parameter.kind {
                ParameterKind::Objects(fields) | ParameterKind::Object(fields) => has(fields, name),
                _ => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use crate::dialect;

    #[test]
    fn arguments_have_the_names_that_the_tool_has_for_them() {
        let unique = "Add surrounding lines to `find` until it is unique, or set `all`.";
        let literal =
            "Fix the pattern at the marked position, or set `literal` to search for it as plain text. Then go on.";
        for (name, tool, text, expected) in [
            (
                "claude",
                "Edit",
                unique,
                "Add surrounding lines to `old_string` until it is unique, or set `replace_all`.",
            ),
            ("claude", "MultiEdit", "`find` is there.", "`old_string` is there."),
            (
                "gemini",
                "replace",
                unique,
                "Add surrounding lines to `old_string` until it is unique, or set `allow_multiple`.",
            ),
            (
                "opencode",
                "edit",
                unique,
                "Add surrounding lines to `oldString` until it is unique, or set `replaceAll`.",
            ),
            ("autonous", "edit", unique, unique),
            ("claude", "Grep", literal, "Fix the pattern at the marked position. Then go on."),
            ("gemini", "grep_search", literal, &literal.replace("literal", "fixed_strings")),
            ("claude", "Grep", "`find`, `find` and , or set `x", "`find`, `find` and , or set `x"),
        ] {
            assert_eq!(dialect(name).unwrap().tool(tool).unwrap().own_arguments(text), expected, "{name} {tool}");
        }
    }
    #[test]
    fn only_switches_that_the_tool_has_are_proposed() {
        let both = "Nothing matched: set `gitignore` to false or `hidden` to true to see them.";
        for (name, tool, remark, expected) in [
            ("gemini", "glob", both, "Nothing matched: set `respect_git_ignore` to false to see them."),
            ("gemini", "grep_search", both, "Nothing matched: set `no_ignore` to true to see them."),
            ("opencode", "glob", both, "Nothing matched."),
            ("opencode", "glob", "It is: set aside.", "It is: set aside."),
        ] {
            assert_eq!(dialect(name).unwrap().tool(tool).unwrap().own_switches(remark), expected, "{name} {tool}");
        }
    }
}
