//! The commands of a conversation: a line that begins with `/`.

/// A command of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SlashCommand {
    Help,
    Model(Option<String>),
    Preset(Option<String>),
    Undo,
    Changes,
    Plan,
    Cost,
    Quit,
}

/// The commands, as `/help` shows them.
pub(super) const COMMANDS: &str = "\
/model [NAME]    which model answers, or another one from now on
/preset [NAME]   what tools may do: read-only, workspace, autonomous or full
/changes         what this conversation changed
/undo            undo the last change that isn't undone yet
/plan            the plan and the todo list
/cost            tokens and money so far
/quit            end the conversation; also Ctrl-D";

/// The keys, as `/help` tells them below the commands.
pub(super) const KEYS: &str = "Enter sends. Alt-Enter, Ctrl-J or a backslash before Enter begins another line. Tab completes \
                               @path and /command. Up and Down show what you sent before. While the model works, what you \
                               send reaches it before its next turn; Esc or Ctrl-C interrupts it.";

impl SlashCommand {
    /// All commands, as they are typed.
    pub(super) const NAMES: [&str; 8] = ["/help", "/model", "/preset", "/changes", "/undo", "/plan", "/cost", "/quit"];

    /// Reads a line. `None` for a message; an error for a command that nobody knows.
    pub(super) fn parse(line: &str) -> Option<Result<Self, String>> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        // A path such as /etc/hosts isn't a command.
        if !name.starts_with('/') || name[1..].contains('/') || name.len() == 1 {
            return None;
        }
        Some(Ok(match name {
            "/help" | "/?" => Self::Help,
            "/model" => Self::Model(argument),
            "/preset" => Self::Preset(argument),
            "/undo" => Self::Undo,
            "/changes" | "/diff" => Self::Changes,
            "/plan" | "/todo" => Self::Plan,
            "/cost" => Self::Cost,
            "/quit" | "/exit" => Self::Quit,
            _ => return Some(Err(format!("There is no command `{name}`. /help shows those that there are."))),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_or_a_message() {
        assert_eq!(SlashCommand::parse("/model  chat:x "), Some(Ok(SlashCommand::Model(Some("chat:x".into())))));
        assert_eq!(SlashCommand::parse("/undo"), Some(Ok(SlashCommand::Undo)));
        assert!(SlashCommand::parse("/nothing").unwrap().unwrap_err().contains("/help"));
        for message in ["fix it", "/etc/hosts is wrong", "/", ""] {
            assert_eq!(SlashCommand::parse(message), None, "{message}");
        }
    }
}
