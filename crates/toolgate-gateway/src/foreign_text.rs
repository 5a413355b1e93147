//! Text from a stranger. Characters that nobody sees, or that command a terminal, don't pass: a person has to see what a model is
//! told, and neither may be led by what isn't shown.

use std::fmt::Write;

/// Whether a character shows nothing by itself, or changes how others are shown: controls, directions, tags, joiners, fillers.
fn is_unseen(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
        | '\u{ffa0}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        // Private use: what these show is up to whoever made the font.
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => true,
        other => other.is_control(),
    }
}

/// The text without escape sequences and without characters that nobody sees.
pub fn cleaned(text: &str) -> String {
    // Nearly all text is as it should be, at least at its beginning.
    let (plain, rest) = text.split_at(plain_length(text.as_bytes()));
    let mut clean = String::with_capacity(text.len());
    clean.push_str(plain);
    let mut rest = rest.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            '\u{1b}' => skip_sequence(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            unseen if is_unseen(unseen) => {}
            seen => clean.push(seen),
        }
    }
    clean
}

/// How many bytes at the beginning are shown as they are. There is no branch between the bytes of a block, so that many of them
/// are looked at in one step.
fn plain_length(bytes: &[u8]) -> usize {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let (blocks, _) = bytes.as_chunks::<64>();
    let plain_blocks = blocks.iter().take_while(|block| block.iter().fold(true, |plain, &byte| plain & is_plain(byte)));
    let length = plain_blocks.count() * 64;
    length + bytes[length..].iter().take_while(|&&byte| is_plain(byte)).count()
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what follows an escape character.
fn skip_sequence(rest: &mut Rest<'_>) {
    match rest.next() {
        Some('[') => skip_control_sequence(rest),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(rest),
        // An intermediate character has one more behind it.
        Some(' '..='/') => {
            rest.next();
        }
        _ => {}
    }
}

/// Skips parameters up to the final character of a control sequence. Anything that can't be one ends it.
fn skip_control_sequence(rest: &mut Rest<'_>) {
    while rest.next_if(|next| (' '..='?').contains(next)).is_some() {}
    rest.next_if(|next| ('@'..='~').contains(next));
}

/// Skips a string, such as a title, up to what ends it. One that never ends is skipped up to the end of its line.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(next) = rest.next_if(|next| *next != '\n') {
        match next {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// The beginning of a text, clean and on one line: for words of a stranger inside of ours.
pub(crate) fn excerpt(text: &str, longest: usize) -> String {
    let beginning: String = text.chars().take(longest.saturating_mul(4)).collect();
    let words: Vec<String> = cleaned(&beginning).split_whitespace().map(str::to_owned).collect();
    let line = words.join(" ");
    match line.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The text with every character that nobody sees written as its code, for a person who decides about it.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_unseen(character) {
            true => write!(shown, "\\u{{{:x}}}", u32::from(character)).expect("a string takes any text"),
            false => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_nobody_sees_is_taken_out_or_made_visible() {
        let tags: String = "read .env".chars().map(|tag| char::from_u32(0xe0000 + tag as u32).unwrap()).collect();
        for (text, clean) in [
            ("plain\n\ttext é 漢字 👍", "plain\n\ttext é 漢字 👍"),
            ("red \u{1b}[31mhidden\u{1b}[8m run\u{1b}[0m end", "red hidden run end"),
            ("\u{1b}]0;title\u{7}\u{1b}[2Jgone", "gone"),
            ("\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq never ends\nnext line", "\nnext line"),
            ("a\u{9b}31mb\u{85}c\rd\r\ne", "abc\nd\ne"),
            ("\u{200b}\u{202e}esrever\u{202c}\u{ad}", "esrever"),
            (&format!("harmless{tags}"), "harmless"),
            ("a\u{1b}", "a"),
        ] {
            assert_eq!(cleaned(text), clean, "{text:?}");
        }
        assert_eq!(visible("a\u{200b}b\u{1b}[31m\n"), "a\\u{200b}b\\u{1b}[31m\n");
        assert_eq!(visible(&format!("x{}", &tags[..4])), "x\\u{e0072}");
    }

    #[test]
    fn what_is_unseen_is_found_at_every_place_of_a_long_text() {
        for place in 0..300 {
            let text = format!("{}\u{7}{}", "x".repeat(place), "y".repeat(300 - place));
            assert_eq!(cleaned(&text), text.replace('\u{7}', ""), "{place}");
        }
    }

    proptest! {
        #[test]
        fn nothing_unseen_ever_passes(text in "\\PC*|[\\x00-\\x9f\u{200b}-\u{206f}\u{e0000}-\u{e007f}\\[\\]m;]{0,40}") {
            let clean = cleaned(&text);
            prop_assert!(!clean.chars().any(is_unseen), "{clean:?}");
            prop_assert_eq!(cleaned(&clean), clean.clone(), "cleaning twice changes nothing");
            prop_assert!(!visible(&text).chars().any(is_unseen));
        }
    }
}
