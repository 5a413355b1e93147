//! The person's input: text of several lines with a cursor, editing keys as in a shell, and a history.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthChar;

use super::history::History;
use crate::terminal::{BLUE, DIM, LiveArea, paint};

/// The most rows of input that are shown.
const MAX_ROWS: usize = 12;

/// What a key meant, where it wasn't editing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditorAction {
    /// The text changed, or nothing happened.
    None,
    /// Send this text.
    Submit(String),
    /// Complete the word before the cursor.
    Complete,
    /// Ctrl-C or Esc.
    Interrupt,
    /// Ctrl-D without any text.
    EndOfInput,
}

/// The input of a conversation.
#[derive(Debug)]
pub(super) struct Editor {
    text: String,
    /// The cursor, in bytes.
    cursor: usize,
    history: History,
    /// The entry of the history that is shown, and what was typed before.
    browsing: Option<(usize, String)>,
}

impl Editor {
    pub(super) fn new(history: History) -> Self {
        Self { text: String::new(), cursor: 0, history, browsing: None }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(super) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Replaces this many bytes before the cursor.
    pub(super) fn replace_before_cursor(&mut self, bytes: usize, with: &str) {
        let start = self.cursor.saturating_sub(bytes);
        self.text.replace_range(start..self.cursor, with);
        self.cursor = start + with.len();
    }

    pub(super) fn clear(&mut self) {
        self.take();
    }

    /// Takes the text away.
    pub(super) fn take(&mut self) -> String {
        self.cursor = 0;
        self.browsing = None;
        std::mem::take(&mut self.text)
    }

    /// Shows this text instead, with the cursor behind it.
    pub(super) fn restore(&mut self, text: String) {
        self.clear();
        self.cursor = text.len();
        self.text = text;
    }

    /// Inserts text, such as a paste.
    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> EditorAction {
        let (control, alt) = (key.modifiers.contains(KeyModifiers::CONTROL), key.modifiers.contains(KeyModifiers::ALT));
        match key.code {
            KeyCode::Esc => return EditorAction::Interrupt,
            KeyCode::Char('c') if control => return EditorAction::Interrupt,
            KeyCode::Char('d') if control && self.text.is_empty() => return EditorAction::EndOfInput,
            KeyCode::Tab => return EditorAction::Complete,
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.insert("\n"),
            KeyCode::Enter => return self.enter(),
            KeyCode::Char(letter) if control => self.control(letter),
            KeyCode::Char('b') if alt => self.cursor = self.word_start(),
            KeyCode::Char('f') if alt => self.cursor = self.word_end(),
            KeyCode::Char(letter) if !alt => self.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => self.delete(self.word_start(), self.cursor),
            KeyCode::Backspace => self.delete(self.left(), self.cursor),
            KeyCode::Delete => self.delete(self.cursor, self.right()),
            KeyCode::Left if control || alt => self.cursor = self.word_start(),
            KeyCode::Right if control || alt => self.cursor = self.word_end(),
            KeyCode::Left => self.cursor = self.left(),
            KeyCode::Right => self.cursor = self.right(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => {}
        }
        EditorAction::None
    }

    fn control(&mut self, letter: char) {
        match letter {
            'a' => self.cursor = self.line_start(),
            'e' => self.cursor = self.line_end(),
            'b' => self.cursor = self.left(),
            'f' => self.cursor = self.right(),
            'd' => self.delete(self.cursor, self.right()),
            'h' => self.delete(self.left(), self.cursor),
            'k' => self.delete(self.cursor, self.line_end()),
            'u' => self.delete(self.line_start(), self.cursor),
            'w' => self.delete(self.word_start(), self.cursor),
            'p' => self.up(),
            'n' => self.down(),
            _ => {}
        }
    }

    /// Enter sends the text; after a backslash it begins another line.
    fn enter(&mut self) -> EditorAction {
        if self.before_cursor().ends_with('\\') {
            self.replace_before_cursor(1, "\n");
            return EditorAction::None;
        }
        EditorAction::Submit(self.take())
    }

    /// Adds a text to the history.
    pub(super) fn remember(&mut self, text: &str) {
        self.history.add(text);
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn left(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |next| self.cursor + next.len_utf8())
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + 1)
    }

    fn word_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        let begins = after.len() - after.trim_start().len();
        after[begins..].find(char::is_whitespace).map_or(self.text.len(), |at| self.cursor + begins + at)
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// The line above; from the first line, the entry before in the history.
    fn up(&mut self) {
        let start = self.line_start();
        if start == 0 {
            return self.browse(true);
        }
        let column = self.text[start..self.cursor].chars().count();
        let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = at_column(&self.text[above..start - 1], above, column);
    }

    /// The line below; from the last line, the entry after in the history.
    fn down(&mut self) {
        let end = self.line_end();
        if end == self.text.len() {
            return self.browse(false);
        }
        let column = self.text[self.line_start()..self.cursor].chars().count();
        let below = &self.text[end + 1..];
        self.cursor = at_column(below.split('\n').next().unwrap_or_default(), end + 1, column);
    }

    fn browse(&mut self, is_back: bool) {
        let entries = self.history.entries();
        let (at, draft) = self.browsing.take().unwrap_or_else(|| (entries.len(), self.text.clone()));
        let next = if is_back { at.checked_sub(1) } else { Some(at + 1) };
        match next.filter(|next| *next < entries.len()) {
            Some(next) => {
                self.text.clone_from(&entries[next]);
                self.browsing = Some((next, draft));
            }
            None if is_back => self.browsing = (at < entries.len()).then_some((at, draft)),
            None => self.text = draft,
        }
        self.cursor = self.text.len();
    }

    /// The input as it is shown at this width, below a rule.
    pub(super) fn view(&self, prompt: &str, hint: &str, width: usize) -> LiveArea {
        let room = width.saturating_sub(4).max(8);
        let (mut rows, mut cursor) = (vec![String::new()], (0, 0));
        let mut column = 0;
        for (at, character) in self.text.char_indices().chain([(self.text.len(), ' ')]) {
            let columns = character.width().unwrap_or(0);
            if column + columns > room {
                rows.push(String::new());
                column = 0;
            }
            if at == self.cursor {
                cursor = (rows.len() - 1, column);
            }
            if character == '\n' {
                rows.push(String::new());
                column = 0;
            } else if at < self.text.len() {
                // Other control characters could move the terminal's cursor.
                let shown = if character.is_control() { '\u{fffd}' } else { character };
                rows.last_mut().into_iter().for_each(|row| row.push(shown));
                column += columns;
            }
        }
        let first = (cursor.0 + 1).saturating_sub(MAX_ROWS);
        let shown = rows.iter().skip(first).take(MAX_ROWS).enumerate();
        let lines = shown.map(|(index, row)| match index {
            0 => format!("{} {row}", paint(BLUE.bold(), prompt)),
            _ => format!("  {row}"),
        });
        let mut lines: Vec<String> = lines.collect();
        if self.text.is_empty() {
            lines[0].push_str(&paint(DIM, hint));
        }
        LiveArea { lines, cursor: Some((cursor.0 - first, cursor.1 + 2)) }
    }
}

/// The position of a column in a line that begins at `start`.
fn at_column(line: &str, start: usize, column: usize) -> usize {
    start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor() -> Editor {
        Editor::new(History::in_memory(["first", "second\nline"]))
    }

    fn press(editor: &mut Editor, codes: &[(KeyCode, KeyModifiers)]) -> EditorAction {
        let keys = codes.iter().map(|(code, modifiers)| KeyEvent::new(*code, *modifiers));
        keys.map(|key| editor.key(key)).last().unwrap_or(EditorAction::None)
    }

    const PLAIN: KeyModifiers = KeyModifiers::NONE;
    const CONTROL: KeyModifiers = KeyModifiers::CONTROL;

    #[test]
    fn keys_edit_as_in_a_shell() {
        let mut editor = editor();
        editor.insert("one two three");
        press(&mut editor, &[(KeyCode::Char('w'), CONTROL), (KeyCode::Home, PLAIN), (KeyCode::Char('k'), CONTROL)]);
        assert_eq!(editor.text(), "");
        editor.insert("äö");
        press(&mut editor, &[(KeyCode::Left, PLAIN), (KeyCode::Backspace, PLAIN), (KeyCode::Char('x'), PLAIN)]);
        assert_eq!(editor.text(), "xö");
        assert_eq!(press(&mut editor, &[(KeyCode::Enter, PLAIN)]), EditorAction::Submit("xö".into()));
        assert_eq!(press(&mut editor, &[(KeyCode::Char('d'), CONTROL)]), EditorAction::EndOfInput);
    }

    #[test]
    fn several_lines_are_written_with_alt_enter_ctrl_j_and_a_backslash() {
        let mut editor = editor();
        editor.insert("a");
        press(&mut editor, &[(KeyCode::Enter, KeyModifiers::ALT), (KeyCode::Char('b'), PLAIN)]);
        press(&mut editor, &[(KeyCode::Char('j'), CONTROL), (KeyCode::Char('c'), PLAIN)]);
        press(&mut editor, &[(KeyCode::Char('\\'), PLAIN), (KeyCode::Enter, PLAIN), (KeyCode::Char('d'), PLAIN)]);
        assert_eq!(editor.text(), "a\nb\nc\nd");
        let view = editor.view("›", "", 80);
        assert_eq!((view.lines.len(), view.cursor), (4, Some((3, 3))));
    }

    #[test]
    fn the_history_is_browsed_from_the_first_line_and_the_draft_comes_back() {
        let mut editor = editor();
        editor.insert("draft");
        press(&mut editor, &[(KeyCode::Up, PLAIN)]);
        assert_eq!(editor.text(), "second\nline");
        press(&mut editor, &[(KeyCode::Up, PLAIN), (KeyCode::Up, PLAIN)]);
        assert_eq!(editor.text(), "first", "up goes to the line above first");
        press(&mut editor, &[(KeyCode::Down, PLAIN), (KeyCode::Down, PLAIN)]);
        assert_eq!(editor.text(), "draft");
    }

    #[test]
    fn a_long_line_is_wrapped_and_the_cursor_goes_with_it() {
        let mut editor = editor();
        editor.insert(&"x".repeat(30));
        let view = editor.view("›", "", 24);
        assert_eq!((view.lines.len(), view.cursor), (2, Some((1, 12))));
    }
}
