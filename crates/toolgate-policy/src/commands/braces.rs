//! Brace expansion: `a{b,c}d` and `{1..3}`.

use super::syntax::WordPiece;

/// With more words than this, the expansion is unknown.
const MOST: usize = 256;

/// With more groups than this, the expansion is unknown.
const MOST_GROUPS: usize = 16;

/// The words that these pieces expand to; none if there are too many.
pub(super) fn alternatives(pieces: &[WordPiece]) -> Option<Vec<Vec<WordPiece>>> {
    if pieces.iter().filter(|piece| **piece == WordPiece::Brace('{')).count() > MOST_GROUPS {
        return None;
    }
    if has_odd_sequence(pieces) {
        return None;
    }
    let Some((open, close, commas)) = group(pieces) else { return Some(vec![pieces.to_vec()]) };
    let (before, inside, after) = (&pieces[..open], &pieces[open + 1..close], &pieces[close + 1..]);
    let options: Vec<Vec<WordPiece>> = if commas.is_empty() {
        sequence(inside)?.into_iter().map(|text| vec![WordPiece::Text(text)]).collect()
    } else {
        let mut options = Vec::new();
        let mut start = open + 1;
        for end in commas.into_iter().chain([close]) {
            options.extend(alternatives(&pieces[start..end])?);
            start = end + 1;
        }
        options
    };
    let tails = alternatives(after)?;
    if options.len() * tails.len() > MOST {
        return None;
    }
    let join = |option: &Vec<WordPiece>, tail: &Vec<WordPiece>| [before, option.as_slice(), tail.as_slice()].concat();
    Some(options.iter().flat_map(|option| tails.iter().map(move |tail| join(option, tail))).collect())
}

/// `{a..e..2}` and similar sequences, which bash expands and this code doesn't.
fn has_odd_sequence(pieces: &[WordPiece]) -> bool {
    pieces.windows(3).any(|three| match three {
        [WordPiece::Brace('{'), inside @ WordPiece::Text(text), WordPiece::Brace('}')] => {
            text.contains("..") && sequence(std::slice::from_ref(inside)).is_none()
        }
        _ => false,
    })
}

/// The first braces that expand: where they open and close, and the commas between.
fn group(pieces: &[WordPiece]) -> Option<(usize, usize, Vec<usize>)> {
    let mut from = 0;
    while let Some(open) = (from..pieces.len()).find(|at| pieces[*at] == WordPiece::Brace('{')) {
        if let Some((close, commas)) = closing(pieces, open)
            && (!commas.is_empty() || sequence(&pieces[open + 1..close]).is_some())
        {
            return Some((open, close, commas));
        }
        from = open + 1;
    }
    None
}

fn closing(pieces: &[WordPiece], open: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0_usize, Vec::new());
    for (at, piece) in pieces.iter().enumerate().skip(open) {
        match piece {
            WordPiece::Brace('{') => depth += 1,
            WordPiece::Brace('}') if depth == 1 => return Some((at, commas)),
            WordPiece::Brace('}') => depth -= 1,
            WordPiece::Brace(',') if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    None
}

/// `1..5` or `a..e`.
fn sequence(inside: &[WordPiece]) -> Option<Vec<String>> {
    let [WordPiece::Text(text)] = inside else { return None };
    let (first, last) = text.split_once("..")?;
    if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let count = first.abs_diff(last);
        let (low, high) = (first.min(last), first.max(last));
        return (count < MOST as u64).then(|| (low..=high).map(|number| number.to_string()).collect());
    }
    let letter = |text: &str| text.parse::<char>().ok().filter(char::is_ascii_alphabetic);
    let (first, last) = (letter(first)?, letter(last)?);
    Some((first.min(last)..=first.max(last)).map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::super::syntax::{ShellCommandKind, parse};
    use super::*;

    fn expanded(word: &str) -> Vec<String> {
        let script = parse(word).unwrap();
        let ShellCommandKind::Simple { words, .. } = &script.list.0[0].first.0[0].shape else { panic!("{word}") };
        let text = |pieces: Vec<WordPiece>| {
            super::super::syntax::ShellWord { pieces, written: String::new() }.literal().unwrap()
        };
        alternatives(&words[0].pieces).unwrap().into_iter().map(text).collect()
    }

    #[test]
    fn braces_stand_for_what_bash_makes_of_them() {
        for (word, expected) in [
            ("a{b,c}d", &["abd", "acd"][..]),
            ("{a,b}{1,2}", &["a1", "a2", "b1", "b2"]),
            ("{a,{b,c}}", &["a", "b", "c"]),
            ("x{1..3}", &["x1", "x2", "x3"]),
            ("{a..c}", &["a", "b", "c"]),
            ("{}", &["{}"]),
            ("{a}", &["{a}"]),
            ("a,b", &["a,b"]),
            ("{a,b", &["{a,b"]),
            ("{,x}y", &["y", "xy"]),
            ("'{a,b}'", &["{a,b}"]),
            ("{a}{b,c}", &["{a}b", "{a}c"]),
        ] {
            assert_eq!(expanded(word), expected, "{word}");
        }
    }
}
