//! A command with places for arguments. Whatever an argument holds, it stays one word: nothing in it is seen by the shell, and
//! it never becomes an option of the program.

use serde_json::Value;
use toolgate_contract::{ToolError, quoted};

/// A command with places for arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTemplate {
    words: Vec<Vec<Piece>>,
    /// Whether this is a line for the shell, of which only the arguments are quoted.
    is_line: bool,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Argument(String),
}

impl CommandTemplate {
    /// A program and its arguments. `{NAME}` is an argument of the call; `{{` and `}}` are braces.
    pub fn words(words: &[String]) -> Result<Self, ToolError> {
        Ok(Self { words: words.iter().map(|word| parse(word)).collect::<Result<_, _>>()?, is_line: false })
    }

    /// A line for the shell, with the same places.
    pub fn line_for_shell(line: &str) -> Result<Self, ToolError> {
        let pieces = parse(line)?;
        check_places(&pieces)?;
        Ok(Self { words: vec![pieces], is_line: true })
    }

    /// Refuses a command that uses arguments which the schema doesn't have.
    pub(super) fn check(&self, schema: &Value) -> Result<(), ToolError> {
        let unknown = self.words.iter().flatten().find_map(|piece| match piece {
            Piece::Argument(name) if schema["properties"].get(name).is_none() => Some(name),
            _ => None,
        });
        match unknown {
            None => Ok(()),
            Some(name) => Err(ToolError::invalid_args(format!(
                "The command uses `{{{name}}}`, and its schema has no property `{name}`."
            ))),
        }
    }

    /// The command line for these arguments.
    pub(super) fn line(&self, args: &Value) -> Result<String, ToolError> {
        if self.is_line {
            let mut line = String::new();
            for piece in self.words.iter().flatten() {
                match piece {
                    Piece::Text(text) => line.push_str(text),
                    Piece::Argument(name) => {
                        let value = text(name, args)?.unwrap_or_default();
                        let begins_word = line.chars().next_back().is_none_or(|before| !is_of_word(before));
                        if begins_word && value.starts_with('-') && args[name].is_string() {
                            return Err(would_be_option(name, &value));
                        }
                        line.push_str(&quoted(&value));
                    }
                }
            }
            return Ok(line);
        }
        let words = self.words.iter().filter_map(|word| fill(word, args).transpose());
        let words: Vec<String> = words.map(|word| word.map(|word| quoted(&word))).collect::<Result<_, _>>()?;
        Ok(words.join(" "))
    }
}

/// A word with its arguments; none if one of them was left out.
fn fill(word: &[Piece], args: &Value) -> Result<Option<String>, ToolError> {
    let mut filled = String::new();
    for piece in word {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Argument(name) => match text(name, args)? {
                None => return Ok(None),
                Some(value) if filled.is_empty() && value.starts_with('-') && args[name].is_string() => {
                    return Err(would_be_option(name, &value));
                }
                Some(value) => filled.push_str(&value),
            },
        }
    }
    Ok(Some(filled))
}

fn would_be_option(name: &str, value: &str) -> ToolError {
    ToolError::invalid_args(format!(
        "`{name}` is `{value}`, which the program would read as an option. Begin it with another character, such as `./`."
    ))
}

/// Whether a character before a place belongs to the same word.
fn is_of_word(character: char) -> bool {
    !character.is_whitespace() && !matches!(character, '|' | ';' | '&' | '(' | ')' | '<' | '>')
}

/// Refuses a line in which an argument wouldn't be a word of its own: inside of quotes, or where the shell calculates or reads a
/// document, quoting it means something else.
fn check_places(line: &[Piece]) -> Result<(), ToolError> {
    const UNSUITABLE: [&str; 5] = ["`", "<<", "[[", "((", "$["];
    let (mut quote, mut has_places) = (None, false);
    let mut whole = String::new();
    for piece in line {
        match piece {
            Piece::Argument(name) if quote.is_some() => {
                let message =
                    format!("`{{{name}}}` stands inside of quotes; leave them out, since it is quoted already.");
                return Err(ToolError::invalid_args(message));
            }
            Piece::Argument(_) => has_places = true,
            Piece::Text(text) => {
                whole.push_str(text);
                let mut letters = text.chars();
                while let Some(letter) = letters.next() {
                    match (quote, letter) {
                        (None | Some('"'), '\\') => drop(letters.next()),
                        (None, '\'' | '"') => quote = Some(letter),
                        (Some(open), close) if open == close => quote = None,
                        _ => {}
                    }
                }
            }
        }
    }
    match UNSUITABLE.iter().find(|text| has_places && whole.contains(**text)) {
        None => Ok(()),
        Some(text) => Err(ToolError::invalid_args(format!(
            "The line has places for arguments and `{text}`, where a quoted word isn't one; put that into a script of your own."
        ))),
    }
}

/// An argument as a word; none if it was left out.
fn text(name: &str, args: &Value) -> Result<Option<String>, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.contains('\0') => {
            Err(ToolError::invalid_args(format!("`{name}` has a NUL character, which no command can take.")))
        }
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Some(value.to_string())),
        Some(Value::Array(_) | Value::Object(_)) => Err(ToolError::invalid_args(format!(
            "`{name}` is a list or an object, which can't be one word of a command."
        ))),
    }
}

fn parse(word: &str) -> Result<Vec<Piece>, ToolError> {
    let wrong = |why: &str| ToolError::invalid_args(format!("The word `{word}` of the command {why}."));
    let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), word);
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        let (brace, after) = (&rest[at..=at], &rest[at + 1..]);
        if after.starts_with(brace) {
            literal.push_str(brace);
            rest = &after[1..];
            continue;
        }
        let end =
            after.find('}').filter(|_| brace == "{").ok_or_else(|| wrong("has a single brace; write `{{` or `}}`"))?;
        let name = &after[..end];
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            return Err(wrong("has a place without a name; write `{NAME}`, or `{{` for a brace"));
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Argument(name.to_owned()));
        rest = &after[end + 1..];
    }
    literal.push_str(rest);
    if !literal.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(words: &[&str]) -> Result<CommandTemplate, ToolError> {
        CommandTemplate::words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn an_argument_is_one_word_whatever_it_holds() {
        let template = words(&["make", "-C", "{where}", "--jobs={jobs}", "{{x}}", "{note}"]).unwrap();
        for (args, expected) in [
            (json!({ "where": "docs", "jobs": 2, "note": "n" }), "make -C docs '--jobs=2' '{x}' n"),
            (json!({ "where": "a b; rm -rf $HOME", "note": "" }), "make -C 'a b; rm -rf $HOME' '{x}' ''"),
            (json!({ "where": "it's `x`\n", "note": null }), "make -C 'it'\\''s `x`\n' '{x}'"),
            (json!({ "where": "d", "jobs": -1, "note": true }), "make -C d '--jobs=-1' '{x}' true"),
        ] {
            assert_eq!(template.line(&args).unwrap(), expected, "{args}");
        }
        let line = CommandTemplate::line_for_shell("cat {file} | wc -l").unwrap();
        assert_eq!(line.line(&json!({ "file": "a; b" })).unwrap(), "cat 'a; b' | wc -l");
        assert_eq!(line.line(&json!({})).unwrap(), "cat '' | wc -l");
        assert!(line.line(&json!({ "file": "--version" })).is_err(), "no option there either");
        for line in [
            r#"echo "hello {who}""#,
            "echo '{who}'",
            "[[ {n} -gt 3 ]]",
            "echo `ls {d}`",
            "cat <<E\n{x}\nE",
            "(( {n} ))",
        ] {
            assert!(CommandTemplate::line_for_shell(line).is_err(), "{line}");
        }
        let quoted = CommandTemplate::line_for_shell(r#"grep "a b\"c" {f} 'd' --x={g}"#).unwrap();
        assert_eq!(quoted.line(&json!({ "f": "x", "g": "-y" })).unwrap(), r#"grep "a b\"c" x 'd' --x=-y"#);
    }

    #[test]
    fn what_would_be_an_option_a_list_or_no_text_is_refused() {
        let template = words(&["tool", "{a}"]).unwrap();
        for args in [json!({ "a": "--eval=x" }), json!({ "a": ["x"] }), json!({ "a": {} }), json!({ "a": "x\0y" })] {
            assert!(template.line(&args).is_err(), "{args}");
        }
        assert_eq!(template.line(&json!({ "a": -5 })).unwrap(), "tool -5", "a number isn't an option");
    }

    #[test]
    fn a_template_that_cannot_be_filled_is_refused_when_it_is_read() {
        for word in ["{", "}", "{}", "{a b}", "x}y", "{a"] {
            assert!(words(&[word]).is_err(), "{word}");
        }
        let template = words(&["{known}", "{unknown}"]).unwrap();
        let schema = json!({ "properties": { "known": {} } });
        assert!(template.check(&schema).unwrap_err().message.contains("`unknown`"));
        assert_eq!(words(&[""]).unwrap().line(&json!({})).unwrap(), "''");
    }
}
