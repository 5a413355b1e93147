//! "Did you mean": the known name that is closest to an unknown one.

/// The nearest of `known` to `unknown`, if any is similar enough.
pub(crate) fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = unknown.to_lowercase();
    known
        .into_iter()
        .map(|name| (similarity(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// The similarity of two names: 1 if equal, 0 for nothing in common. A name that contains the other (`read_file`,
/// `read`) is more likely meant than its letters alone would say.
fn similarity(a: &str, b: &str) -> f64 {
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
