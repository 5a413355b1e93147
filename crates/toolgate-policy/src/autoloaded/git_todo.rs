//! Parses the todo list of a rebase far enough to recognize an ordinary one: git runs every `exec` command as soon as
//! the rebase continues. Every command that this parser doesn't know is suspicious.

/// The commands that run nothing, long and short.
#[rustfmt::skip]
const ORDINARY: &[&str] = &[
    "pick", "p", "revert", "edit", "e", "reword", "r", "fixup", "f", "squash", "s", "drop", "d", "label", "l", "reset", "t",
    "merge", "m", "update-ref", "u", "break", "b", "noop",
];

/// The first suspicious command in the todo list of a rebase; none if all of them are ordinary.
pub fn suspicious_in_git_todo(text: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(text) else { return Some("it isn't text".into()) };
    let words = text.lines().filter_map(|line| line.split_ascii_whitespace().next());
    let odd = words.filter(|word| !word.starts_with('#')).find(|word| !ORDINARY.contains(word));
    odd.map(|word| format!("`{word}`"))
}

#[cfg(test)]
mod tests {
    use super::suspicious_in_git_todo;

    #[test]
    fn only_commands_that_run_nothing_are_ordinary() {
        let plain = "pick 1234567 Fix it\n  fixup -C 89abcde x\r\nbreak\n\n# exec no\nmerge -C abc topic # x\nupdate-ref refs/x\n";
        assert_eq!(suspicious_in_git_todo(plain.as_bytes()), None);
        for (text, odd) in [
            ("pick 1\nexec touch x\n", "`exec`"),
            ("\tx touch x\n", "`x`"),
            ("x\ttouch x\n", "`x`"),
            ("; pick\n", "`;`"),
            ("EXEC x\n", "`EXEC`"),
        ] {
            assert_eq!(suspicious_in_git_todo(text.as_bytes()).as_deref(), Some(odd), "{text}");
        }
        assert!(suspicious_in_git_todo(&[0xff]).is_some());
    }
}
