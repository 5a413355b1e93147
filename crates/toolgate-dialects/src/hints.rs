//! Hints in a dialect's own words. A native hint names native tools; whoever speaks a dialect knows them by other names.

use toolgate_contract::{ErrorCode, ToolError};

use crate::dialect::Dialect;

/// Words before a name in backticks that make it a tool's. Anything else may be a file, or an argument.
const BEFORE_TOOLS: [&str; 7] = ["use", "with", "tool", "call", "through", "by", "from"];
/// Words between two names.
const BETWEEN_TOOLS: [&str; 2] = ["and", "or"];

/// Errors whose messages name the tool itself, and nothing that a model or a file has named.
const OF_TOOLS: [ErrorCode; 7] = [
    ErrorCode::Timeout,
    ErrorCode::Cancelled,
    ErrorCode::ToolNotAllowed,
    ErrorCode::UnknownTool,
    ErrorCode::SandboxUnavailable,
    ErrorCode::ApprovalRequired,
    ErrorCode::ApprovalDenied,
];

/// Errors that name arguments of the call. Others may name a file that is called like one.
const OF_ARGUMENTS: [ErrorCode; 4] =
    [ErrorCode::InvalidArgs, ErrorCode::NoMatch, ErrorCode::AmbiguousMatch, ErrorCode::FileTooLarge];

/// What the list of all native tools begins with, which is the hint where one of them isn't there.
const NATIVE_TOOLS: &str = "The tools here are: ";

impl Dialect {
    /// The error of a call of a tool that a native one did, with a hint that names this dialect's tools.
    pub(crate) fn with_own_names(&self, tool: &str, native: &str, error: &ToolError) -> ToolError {
        let hint = error.hint.as_ref().map(|hint| match hint.strip_prefix(NATIVE_TOOLS) {
            Some(natives) => {
                let natives: Vec<&str> = natives.trim_end_matches('.').split(", ").collect();
                let there = self.tools.iter().filter(|other| natives.contains(&other.native));
                format!("{NATIVE_TOOLS}{}.", there.map(|other| other.name).collect::<Vec<_>>().join(", "))
            }
            None => self.own_words(hint),
        });
        let message = match OF_TOOLS.contains(&error.code) {
            // Words of a person or of a file may follow; the tool is named first.
            true => error.message.replacen(&format!("`{native}`"), &format!("`{tool}`"), 1),
            false => error.message.clone(),
        };
        let own = ToolError { hint, message, ..error.clone() };
        match self.tool(tool).filter(|_| OF_ARGUMENTS.contains(&error.code)) {
            Some(called) => called.with_own_arguments(own),
            None => own,
        }
    }

    /// A hint with the names of this dialect's tools in place of the native ones that it has.
    pub(crate) fn own_words(&self, hint: &str) -> String {
        let mut parts = hint.split('`');
        let mut said = parts.next().unwrap_or_default().to_owned();
        let (mut before, mut was_tool) = (said.clone(), false);
        while let Some(name) = parts.next() {
            let own = self.name_for(name).filter(|_| is_tool_place(&before, was_tool));
            was_tool = own.is_some();
            said += &format!("`{}", own.unwrap_or(name));
            if let Some(text) = parts.next() {
                said += &format!("`{text}");
                text.clone_into(&mut before);
            }
        }
        said
    }

    /// What this dialect calls a native tool, or what does its work.
    fn name_for(&self, native: &str) -> Option<&'static str> {
        let mapped = self.tools.iter().find(|tool| tool.native == native).map(|tool| tool.name);
        mapped.or_else(|| self.instead.iter().find(|(name, _)| *name == native).map(|(_, own)| *own))
    }
}

/// Whether a name behind this text is a tool's. In `use … and …` the second one is, if the first was.
fn is_tool_place(before: &str, was_tool: bool) -> bool {
    let last = before.split_whitespace().last().unwrap_or_default().to_lowercase();
    BEFORE_TOOLS.contains(&last.as_str()) || (was_tool && BETWEEN_TOOLS.contains(&before.trim()))
}

#[cfg(test)]
mod tests {
    use toolgate_contract::{ErrorCode, ToolError};

    use crate::dialect;

    fn said(name: &str, hint: &str) -> String {
        dialect(name).unwrap().own_words(hint)
    }

    #[test]
    fn tools_are_named_as_the_dialect_names_them() {
        for (name, hint, expected) in [
            ("claude", "Use `grep` to find where it is.", "Use `Grep` to find where it is."),
            ("claude", "Use `grep` and `read` for this file.", "Use `Grep` and `Read` for this file."),
            ("claude", "Use `grep` or `lsp_symbols` to find its line.", "Use `Grep` or `LSP` to find its line."),
            ("codex", "Rewrite the file with `write`.", "Rewrite the file with `apply_patch`."),
            ("codex-2026-01", "Use `list` to see what is in it.", "Use `list_dir` to see what is in it."),
            (
                "gemini",
                "Change it with a program, through `shell`.",
                "Change it with a program, through `run_shell_command`.",
            ),
            ("opencode", "Use `list` to see what is in it.", "Use `read` to see what is in it."),
            ("autonous", "Check the spelling with `grep`.", "Check the spelling with `grep`."),
            ("clude", "Use `read`.", "Use `read_file`."),
        ] {
            assert_eq!(said(name, hint), expected, "{name}");
        }
    }

    #[test]
    fn a_message_about_the_tool_itself_names_it_too() {
        let said = |code, message: &str| {
            dialect("claude").unwrap().with_own_names("Bash", "shell", &ToolError::new(code, message)).message
        };
        assert_eq!(said(ErrorCode::Timeout, "`shell` was stopped after 2s."), "`Bash` was stopped after 2s.");
        assert_eq!(said(ErrorCode::NotFound, "`shell` doesn't exist."), "`shell` doesn't exist.", "a file");
    }

    #[test]
    fn a_list_of_all_tools_has_those_whose_native_tool_is_there() {
        let error = ToolError::new(ErrorCode::UnknownTool, "").with_hint("The tools here are: grep, read, shell.");
        let said = dialect("gemini").unwrap().with_own_names("write_file", "write", &error);
        let expected = "The tools here are: read_file, read_many_files, grep_search, run_shell_command.";
        assert_eq!(said.hint.as_deref(), Some(expected));
    }

    #[test]
    fn what_is_no_tool_stays_as_it_is() {
        for hint in [
            "Did you mean `read` or `list`?",
            "Set `recursive` to remove the entire directory.",
            "Say in `path` where to look.",
            "An odd ` sign, then `read",
            "Files like `grep` are there, and `edit` too.",
            "Say the action `list` to see them.",
        ] {
            assert_eq!(said("claude", hint), hint);
        }
    }
}
