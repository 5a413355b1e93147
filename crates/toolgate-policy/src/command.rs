//! Reads a command line as plain words. A plain simple command is a program and its arguments, with quotes at most;
//! whatever a shell would do more with (expand, redirect, chain, assign) makes it unknown.

/// Characters that mean something to a shell outside quotes.
const SPECIAL: &[char] =
    &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '*', '?', '[', ']', '{', '}', '~', '!', '#'];

/// Words that make a shell expect more than a simple command.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function",
    "select", "time", "coproc",
];

/// The words of a plain simple command, or none if the command can't be understood that far.
pub fn plain_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => quoted(&mut letters, letter, word.get_or_insert_default(), &[])?,
            '"' => quoted(&mut letters, letter, word.get_or_insert_default(), &['$', '`', '\\', '!'])?,
            _ if letter.is_control() || SPECIAL.contains(&letter) => return None,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    is_program(words.first()?).then_some(words)
}

/// Takes the text up to the closing quote; none if it is missing or the text holds something a shell would expand.
fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String, special: &[char]) -> Option<()> {
    for letter in letters {
        match letter {
            _ if letter == quote => return Some(()),
            _ if special.contains(&letter) || letter == '\0' => return None,
            _ => word.push(letter),
        }
    }
    None
}

/// A first word with `=` may be an assignment; a reserved one opens a compound command.
fn is_program(word: &str) -> bool {
    !word.is_empty() && !word.contains('=') && !RESERVED.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_are_read_word_by_word() {
        for (command, expected) in [
            ("git status", vec!["git", "status"]),
            ("  git\tstatus  ", vec!["git", "status"]),
            ("git commit -m 'a; b $c'", vec!["git", "commit", "-m", "a; b $c"]),
            (r#"echo "two words" x"y"'z'"#, vec!["echo", "two words", "xyz"]),
            ("printf '' \"\"", vec!["printf", "", ""]),
            ("make CC=clang", vec!["make", "CC=clang"]),
            ("\"git\" status", vec!["git", "status"]),
        ] {
            assert_eq!(plain_words(command).as_deref(), Some(&expected.map_owned()[..]), "{command}");
        }
    }

    #[test]
    fn what_a_shell_would_do_more_with_is_unknown() {
        for command in [
            "",
            "   ",
            "''",
            "a | b",
            "a && b",
            "a; b",
            "a &",
            "a > b",
            "a\nb",
            "a\rb",
            "a\0b",
            "echo $HOME",
            "echo `id`",
            "echo \"$(id)\"",
            "echo \"a\\\"b\"",
            "ls *.rs",
            "ls ~",
            "rm {a,b}",
            "r\\m x",
            "echo 'open",
            "echo \"open",
            "FOO=1 rm x",
            "if true",
            "time rm x",
            "! true",
            "echo hi # note",
            "[ -f x ]",
        ] {
            assert_eq!(plain_words(command), None, "{command:?}");
        }
    }

    trait MapOwned {
        fn map_owned(self) -> Vec<String>;
    }

    impl MapOwned for Vec<&str> {
        fn map_owned(self) -> Vec<String> {
            self.into_iter().map(str::to_owned).collect()
        }
    }
}
