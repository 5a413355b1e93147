//! What a file looks like around a change, for clients that show it.

/// The number of the first line of the new version that a unified diff shows.
pub(crate) fn first_changed_line(diff: &str) -> i64 {
    let header = diff.lines().find(|line| line.starts_with("@@"));
    let new = header.and_then(|header| header.split_whitespace().find_map(|word| word.strip_prefix('+')));
    new.and_then(|new| new.split(',').next()?.parse().ok()).unwrap_or(1).max(1)
}

/// The lines of the new version that a unified diff shows.
pub(crate) fn changed_lines(diff: &str) -> String {
    let lines = diff.lines().skip_while(|line| !line.starts_with("@@")).filter(|line| line.starts_with([' ', '+']));
    lines.map(|line| &line[1..]).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_the_new_version_are_shown() {
        let diff = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
        assert_eq!((changed_lines(diff).as_str(), first_changed_line(diff)), ("one\nTWO\nthree", 1));
        assert_eq!(first_changed_line("--- a\n+++ a\n@@ -7,3 +8,4 @@\n one\n"), 8);
    }
}
