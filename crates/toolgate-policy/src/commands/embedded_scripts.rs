//! Programs of `sed`, `awk` and `jq`, parsed far enough to know that they only print.

use toolgate_contract::Access;

type FileAccesses = Vec<(Access, String)>;

/// The files that a program of `sed` reads and writes, or why they are unknown.
pub(super) fn sed(program: &str) -> Result<FileAccesses, String> {
    let mut reader = SedParser { rest: program, files: Vec::new() };
    while !reader.rest.is_empty() {
        reader.command()?;
    }
    Ok(reader.files)
}

struct SedParser<'a> {
    rest: &'a str,
    files: FileAccesses,
}

impl SedParser<'_> {
    fn take(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(letter)
    }

    fn skip(&mut self, fits: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(fits);
    }

    fn line(&mut self) -> String {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line.trim_start().to_owned()
    }

    fn command(&mut self) -> Result<(), String> {
        self.skip(|letter| letter.is_whitespace() || letter == ';');
        self.address()?;
        self.skip(|letter| letter == ' ');
        if self.rest.starts_with(',') {
            self.take();
            self.skip(|letter| letter == ' ');
            self.address()?;
        }
        self.skip(|letter| letter == ' ' || letter == '!');
        let Some(command) = self.take() else { return Ok(()) };
        match command {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            'q' | 'Q' | 'l' | 'L' => self.skip(|letter| letter.is_ascii_digit() || letter == ' '),
            'a' | 'i' | 'c' | '#' => drop(self.line()),
            ':' | 'b' | 't' | 'T' => {
                self.skip(|letter| letter == ' ');
                self.skip(|letter| letter.is_alphanumeric() || letter == '_');
                self.skip(|letter| letter == ' ');
                if !(self.rest.is_empty() || self.rest.starts_with([';', '}', '\n'])) {
                    return Err(unread());
                }
            }
            'r' | 'R' => {
                let file = self.line();
                self.files.push((Access::Read, file));
            }
            'w' | 'W' => {
                let file = self.line();
                self.files.push((Access::Write, file));
            }
            's' => self.substitution()?,
            'y' => {
                let mark = self.take().ok_or_else(unread)?;
                self.replacement(mark)?;
                self.replacement(mark)?;
            }
            'e' => return Err("its program runs a command (`e`)".into()),
            _ => return Err(unread()),
        }
        Ok(())
    }

    fn address(&mut self) -> Result<(), String> {
        match self.rest.chars().next() {
            Some('/') => {
                self.take();
                self.until('/')?;
                self.skip(|letter| letter == 'I' || letter == 'M');
            }
            Some('\\') => {
                self.take();
                let mark = self.take().ok_or_else(unread)?;
                self.until(mark)?;
            }
            _ => self.skip(|letter| letter.is_ascii_digit() || matches!(letter, '$' | '~' | '+')),
        }
        Ok(())
    }

    /// Skips the text up to a mark that isn't escaped and isn't in a set.
    fn until(&mut self, mark: char) -> Result<(), String> {
        let mut in_set = false;
        while let Some(letter) = self.take() {
            match letter {
                // In a set a backslash is literal, but not in every version.
                '\\' if in_set => return Err(unread()),
                '\\' => drop(self.take()),
                '[' if !in_set && mark != '[' => {
                    in_set = true;
                    // A bracket that comes first in a set is part of it.
                    self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
                    self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
                }
                ']' => in_set = false,
                _ if letter == mark && !in_set => return Ok(()),
                _ => {}
            }
        }
        Err(unread())
    }

    fn substitution(&mut self) -> Result<(), String> {
        let mark = self.take().ok_or_else(unread)?;
        if mark == '\n' || mark == '\\' {
            return Err(unread());
        }
        self.until(mark)?;
        self.replacement(mark)?;
        loop {
            match self.rest.chars().next() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => drop(self.take()),
                Some('e') => return Err("its program runs what it finds (`s///e`)".into()),
                Some('w') => {
                    self.take();
                    let file = self.line();
                    self.files.push((Access::Write, file));
                    return Ok(());
                }
                None | Some(';' | '}' | '\n' | ' ' | '#') => return Ok(()),
                _ => return Err(unread()),
            }
        }
    }

    fn replacement(&mut self, mark: char) -> Result<(), String> {
        while let Some(letter) = self.take() {
            match letter {
                '\\' => drop(self.take()),
                _ if letter == mark => return Ok(()),
                _ => {}
            }
        }
        Err(unread())
    }
}

fn unread() -> String {
    "its program can't be parsed".into()
}

/// The files that a program of `awk` touches: none, or why they are unknown.
pub(super) fn awk(program: &str) -> Result<FileAccesses, String> {
    // It is hard to tell where a pattern ends and a division begins, so these words count even in apparent text.
    if program.len() > 16 * 1024 || ["system", "getline"].iter().any(|word| program.contains(word)) {
        return Err("its program may run commands".into());
    }
    let code = without_literals(program).ok_or_else(unread)?;
    let words: Vec<&str> = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    for risky in ["system", "getline", "fflush", "close", "ENVIRON", "ARGV"] {
        if words.contains(&risky) {
            return Err(format!("its program uses `{risky}`"));
        }
    }
    if code.contains('@') {
        return Err("its program loads or calls code that can't be analyzed (`@`)".into());
    }
    if code.replace("||", "").contains('|') {
        return Err("its program pipes to a command".into());
    }
    match redirects(&code) {
        true => Err("its program writes to a file".into()),
        false => Ok(Vec::new()),
    }
}

/// Whether a `print` has a `>` outside parentheses: then it writes.
fn redirects(code: &str) -> bool {
    for (at, _) in code.match_indices("print") {
        let mut depth = 0_i32;
        for letter in code[at..].chars() {
            match letter {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                ';' | '}' if depth <= 0 => break,
                '>' if depth <= 0 => return true,
                _ => {}
            }
            if depth < 0 {
                break;
            }
        }
    }
    false
}

/// Whether a program of `jq` loads files or reads the environment: these words, neither as a field nor in a string.
pub(super) fn jq_loads(program: &str) -> bool {
    let mut plain = String::new();
    let mut letters = program.chars();
    while let Some(letter) = letters.next() {
        if letter == '"' {
            // Interpolations in a string are code again.
            while let Some(inner) = letters.next() {
                match inner {
                    '\\' if letters.next() == Some('(') => return true,
                    '"' => break,
                    _ => {}
                }
            }
        } else {
            plain.push(letter);
        }
    }
    let words = plain.split(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '.' | '$'));
    let loads = ["import", "include", "env", "$ENV", "$__prog_args", "input_filename", "getpath"];
    words.map(|word| word.trim_end_matches('.')).any(|word| loads.contains(&word) || word.starts_with("load"))
}

/// The program without strings and patterns; none if one isn't closed.
fn without_literals(program: &str) -> Option<String> {
    let mut code = String::new();
    let mut letters = program.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = code.trim_end().chars().last();
        let begins_pattern =
            letter == '/' && last.is_none_or(|last| !last.is_alphanumeric() && !matches!(last, ')' | ']' | '$' | '_'));
        if letter == '"' || begins_pattern {
            let mut depth = 0_usize;
            loop {
                match letters.next()? {
                    '\\' => drop(letters.next()?),
                    '"' if letter == '/' => return None,
                    '[' if letter == '/' => depth += 1,
                    ']' if letter == '/' => depth = depth.saturating_sub(1),
                    end if end == letter && depth > 0 => return None,
                    end if end == letter => break,
                    _ => {}
                }
            }
            code.push('0');
        } else if letter == '#' {
            while letters.peek().is_some_and(|letter| *letter != '\n') {
                letters.next();
            }
        } else {
            code.push(letter);
        }
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_programs_that_only_print_are_told_from_those_that_do_more() {
        for program in [
            "1,5p",
            "s/a/b/g",
            "/x/,/y/p",
            "$!N;s/\\n/ /",
            "s|/usr|/opt|",
            "/a/{s/b/c/;p}",
            "10q",
            "s/[/]/x/",
            "y/ab/cd/",
            "$p",
            "/^#/d;/^$/d",
            "1~2d",
            "s/e/w/",
        ] {
            assert_eq!(sed(program), Ok(vec![]), "{program}");
        }
        for program in ["1e rm x", "s/a/b/e", "s/.*/rm x/e", "e", "s/a/b/ge", "1{e ls\n}", "s/a", "k"] {
            assert!(sed(program).is_err(), "{program}");
        }
        assert_eq!(sed("w out"), Ok(vec![(Access::Write, "out".into())]));
        assert_eq!(sed("s/a/b/w out"), Ok(vec![(Access::Write, "out".into())]));
        assert_eq!(sed("/x/r /etc/passwd"), Ok(vec![(Access::Read, "/etc/passwd".into())]));
    }

    #[test]
    fn awk_programs_that_only_print_are_told_from_those_that_do_more() {
        for program in [
            "{print $1}",
            "NR>=10 && NR<=20",
            "/a|b/ {print}",
            "{s+=$1} END {print s}",
            "$3 > 5 {print $1}",
            "{print ($1 > 2)}",
            "BEGIN{FS=\":\"} {print $1 \"|\"}",
            "a || b",
            "{ if ($1 > 3) print $2 }",
        ] {
            assert_eq!(awk(program), Ok(vec![]), "{program}");
        }
        for program in [
            "BEGIN{system(\"rm x\")}",
            "{print > \"f\"}",
            "{print | \"sh\"}",
            "{\"date\" | getline d}",
            "{print $1 >> f}",
            "@load \"x\"",
            "{print \"a",
        ] {
            assert!(awk(program).is_err(), "{program}");
        }
    }
}
