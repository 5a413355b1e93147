//! "Did you mean": the known name that is closest to an unknown one.

/// The nearest of `known` to `unknown`, if any is near enough to be what was meant.
pub(crate) fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = unknown.to_lowercase();
    known
        .into_iter()
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// 1 for the same, 0 for nothing in common. A name that holds the other (`read_file`, `read`) is meant more often
/// than letters alone would say.
fn likeness(a: &str, b: &str) -> f64 {
    let contained = a.len().min(b.len()) >= 3 && (a.contains(b) || b.contains(a));
    let by_letters = strsim::jaro_winkler(a, b);
    if contained { by_letters.max(0.8) } else { by_letters }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let tools = ["read", "list", "display", "artifact"];
        for (unknown, expected) in [
            ("raed", Some("read")),
            ("read_file", Some("read")),
            ("LIST", Some("list")),
            ("dispaly", Some("display")),
            ("xyzzy", None),
            ("", None),
        ] {
            assert_eq!(nearest(unknown, tools), expected, "{unknown}");
        }
    }
}
