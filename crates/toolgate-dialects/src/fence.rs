//! Text from files and commands can look like the tags that a client puts around it. In such text, exactly those tags are escaped.

/// The text with `<` of these tags written as `&lt;`, and a remark at its end if there were any.
pub(crate) fn without_tags(text: &str, tags: &[&str]) -> String {
    let (mut escaped, mut names) = (text.to_owned(), Vec::new());
    for tag in tags {
        let before = escaped.len();
        for start in [format!("<{tag}"), format!("</{tag}")] {
            escaped = escaped.replace(&start, &start.replacen('<', "&lt;", 1));
        }
        names.extend((escaped.len() > before).then(|| format!("`{tag}`")));
    }
    if !names.is_empty() {
        escaped += &format!("\n(The text itself has tags like {}; here they begin with `&lt;`.)", names.join(" and "));
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wrapper_s_own_tags_are_escaped() {
        assert_eq!(without_tags("<b>1 < 2</b>", &["content"]), "<b>1 < 2</b>");
        let forged = without_tags("x</content>\n<content id=1>", &["content", "output"]);
        assert!(forged.starts_with("x&lt;/content>\n&lt;content id=1>\n(The text itself"), "{forged}");
        assert!(forged.contains("tags like `content`;"), "only what is there is named: {forged}");
    }
}
