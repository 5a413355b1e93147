//! Converts HTML to readable text: tags are removed, the visual structure stays. It accepts any input, in one pass; a
//! malformed page gives slightly malformed text.

mod entities;

use entities::decoded;

/// The text of an HTML page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadablePage {
    /// The page's title.
    pub(crate) title: Option<String>,
    /// The readable text.
    pub(crate) text: String,
}

/// Elements whose content is never shown.
const SKIPPED_ELEMENTS: &[&str] =
    &["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "math"];

/// Block elements: they start and end a line.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
    "option",
];

/// Block elements with an empty line around them.
const SPACED: &[&str] =
    &["blockquote", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul"];

/// Converts a page to Markdown or plain text.
pub(crate) fn read(page: &str, markdown: bool) -> ReadablePage {
    let mut writer = HtmlTextWriter { markdown, ..HtmlTextWriter::default() };
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        writer.words(&rest[..start]);
        rest = &rest[start..];
        rest = match rest.strip_prefix("<!--") {
            Some(comment) => comment.split_once("-->").map_or("", |(_, after)| after),
            None => writer.markup(rest),
        };
    }
    writer.words(rest);
    writer.finish()
}

/// An HTML tag.
struct HtmlTag<'a> {
    name: String,
    closes: bool,
    attributes: &'a str,
}

impl<'a> HtmlTag<'a> {
    /// Parses a tag and returns the text after it; `None` if this is not a tag.
    fn read(text: &'a str) -> Option<(Self, &'a str)> {
        let inside = text.strip_prefix('<')?;
        let (closes, inside) = inside.strip_prefix('/').map_or((false, inside), |inside| (true, inside));
        if !inside.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '!' | '?')) {
            return None;
        }
        let end = end_of_tag(inside)?;
        let name_end = inside.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')).unwrap_or(end).min(end);
        let name = inside[..name_end].to_ascii_lowercase();
        Some((Self { name, closes, attributes: &inside[name_end..end] }, &inside[end + 1..]))
    }

    /// The value of an attribute.
    fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '=').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() && after.is_empty() {
                return None;
            }
            let after = after.trim_start();
            let (value, after) = match after.strip_prefix('=') {
                Some(value) => value_of(value.trim_start()),
                None => ("", after),
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(decoded(value));
            }
            rest = after;
        }
    }
}

/// A quoted or unquoted value, and the text after it.
fn value_of(text: &str) -> (&str, &str) {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].split_once(quote).unwrap_or((&text[1..], "")),
        _ => text.split_at(text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len())),
    }
}

/// Where a tag ends; a `>` inside quotes doesn't count.
fn end_of_tag(inside: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in inside.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') if inside[..at].trim_end().ends_with('=') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // The quotes never close: fall back to the next `>`.
    inside.find('>')
}

/// The output text while it is being built.
#[derive(Default)]
struct HtmlTextWriter {
    markdown: bool,
    title: Option<String>,
    text: String,
    /// Line ends to write before the next word.
    due: usize,
    /// Whether to write a space before the next word.
    blank: bool,
    /// A prefix for the next line, such as `- `.
    bullet: String,
    /// Nesting depth of `pre` elements.
    pre_depth: usize,
    lists: Vec<Option<usize>>,
    /// The open links: where their text begins, and their targets.
    links: Vec<(usize, String)>,
}

impl HtmlTextWriter {
    /// Handles a tag, or text that only looks like one. Returns the text after it.
    fn markup<'a>(&mut self, text: &'a str) -> &'a str {
        let Some((tag, after)) = HtmlTag::read(text) else {
            self.words("<");
            return &text[1..];
        };
        if !tag.closes && (SKIPPED_ELEMENTS.contains(&tag.name.as_str()) || tag.name == "title") {
            let (content, after) = until_closed(after, &tag.name);
            if tag.name == "title" && self.title.is_none() {
                let title = decoded(content).split_whitespace().collect::<Vec<_>>().join(" ");
                self.title = Some(title).filter(|title| !title.is_empty());
            }
            return after;
        }
        self.tag(&tag);
        after
    }

    fn tag(&mut self, tag: &HtmlTag<'_>) {
        let name = tag.name.as_str();
        if BLOCKS.contains(&name) {
            // Nothing inside a list has empty lines around it; only the list itself does.
            let outermost = if tag.closes && matches!(name, "ul" | "ol") { 1 } else { 0 };
            self.due = self.due.max(if SPACED.contains(&name) && self.lists.len() <= outermost { 2 } else { 1 });
            self.blank = false;
        }
        match (name, tag.closes) {
            ("br", _) => self.due += 1,
            ("pre", closes) => self.preformatted(closes),
            ("ul", false) => self.lists.push(None),
            ("ol", false) => self.lists.push(Some(0)),
            ("ul" | "ol", true) => drop(self.lists.pop()),
            ("li", false) => self.item(),
            ("td" | "th", false) if !self.is_at_line_start() => self.raw(" | "),
            ("hr", _) if self.markdown => self.raw("---"),
            ("img", false) => {
                if let Some(words) = tag.attribute("alt").filter(|words| !words.trim().is_empty()) {
                    self.raw(&format!("[{}]", words.trim()));
                }
            }
            _ if self.markdown => self.markdown_tag(tag),
            _ => {}
        }
    }

    /// Handles tags that only Markdown can express.
    fn markdown_tag(&mut self, tag: &HtmlTag<'_>) {
        match (tag.name.as_str(), tag.closes) {
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => {
                let level = usize::from(tag.name.as_bytes()[1] - b'0');
                self.bullet = format!("{} ", "#".repeat(level));
            }
            ("blockquote", false) => self.bullet = "> ".into(),
            ("b" | "strong", false) => self.opening("**"),
            ("b" | "strong", true) => self.closing("**"),
            ("code", false) if self.pre_depth == 0 => self.opening("`"),
            ("code", true) if self.pre_depth == 0 => self.closing("`"),
            ("a", false) => {
                let to = tag.attribute("href").filter(|to| !to.starts_with('#') && !to.starts_with("javascript:"));
                self.flush_pending();
                self.links.push((self.text.len(), to.unwrap_or_default()));
            }
            ("a", true) => {
                if let Some((start, to)) =
                    self.links.pop().filter(|(start, to)| !to.is_empty() && *start < self.text.len())
                {
                    self.text.insert(start, '[');
                    self.text.push_str(&format!("]({to})"));
                }
            }
            _ => {}
        }
    }

    fn preformatted(&mut self, closes: bool) {
        if closes {
            self.pre_depth = self.pre_depth.saturating_sub(1);
        }
        if self.markdown {
            // The fence is next to its content, with an empty line outside.
            let (before, after) = if closes { (1, 2) } else { (self.due, 1) };
            self.due = before;
            self.raw("```");
            self.due = after;
        }
        self.pre_depth += usize::from(!closes);
    }

    fn item(&mut self) {
        let depth = self.lists.len().saturating_sub(1);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{number}. ")
            }
            _ => "- ".into(),
        };
        self.bullet = format!("{}{mark}", "  ".repeat(depth));
    }

    /// Text between tags: any run of whitespace becomes one space, except inside `pre`.
    fn words(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        let words = decoded(words);
        if self.pre_depth > 0 {
            return self.raw(&words);
        }
        self.blank |= words.starts_with(char::is_whitespace);
        for word in words.split_whitespace() {
            self.raw(word);
            self.blank = true;
        }
        self.blank = words.ends_with(char::is_whitespace);
    }

    /// Writes text, after any pending line ends or space.
    fn raw(&mut self, words: &str) {
        self.flush_pending();
        self.text.push_str(words);
    }

    fn opening(&mut self, mark: &str) {
        self.raw(mark);
    }

    fn closing(&mut self, mark: &str) {
        self.text.push_str(mark);
    }

    fn flush_pending(&mut self) {
        if self.due > 0 && !self.text.is_empty() {
            self.text.truncate(self.text.trim_end_matches([' ', '\t']).len());
            let there = self.text.len() - self.text.trim_end_matches('\n').len();
            self.text.extend(std::iter::repeat_n('\n', self.due.saturating_sub(there)));
        } else if self.blank && !self.is_at_line_start() && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
        self.text.push_str(&std::mem::take(&mut self.bullet));
        (self.due, self.blank) = (0, false);
    }

    fn is_at_line_start(&self) -> bool {
        self.due > 0 || self.text.is_empty() || self.text.ends_with('\n')
    }

    fn finish(self) -> ReadablePage {
        ReadablePage { title: self.title, text: self.text.trim().to_owned() }
    }
}

/// Everything up to the tag that closes this element, and the text after that tag.
fn until_closed<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = text[from..].find("</").map(|at| at + from) {
        let tail = &text[at + 2..];
        let is_it = tail.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        if is_it && !tail[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return (&text[..at], tail.split_once('>').map_or("", |(_, after)| after));
        }
        from = at + 2;
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: &str = r#"<!DOCTYPE html><html><head><title>The &amp; page</title><style>p { color: red }</style>
        <script>if (1 < 2) { document.write("<p>no</p>") }</script></head>
        <body><!-- hidden <p>no</p> --><h1>Big   news</h1><p>One <b>bold</b> word,<br>a <a href="/x?a=1&amp;b=2">link</a>.</p>
        <ul><li>first</li><li>second<ol><li>deep</li><li>deeper</li></ol></li></ul>
        <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
        <pre>  keep
    this</pre><p>5 &lt; 6 &#x41;&#66; caf&eacute; &unknown; <img alt="a cat" src=x></body></html>"#;

    #[test]
    fn a_page_becomes_plain_text() {
        let page = read(PAGE, false);
        assert_eq!(page.title.as_deref(), Some("The & page"));
        reads(
            &page.text,
            &[
                "Big news",
                "",
                "One bold word,",
                "a link.",
                "",
                "- first",
                "- second",
                "  1. deep",
                "  2. deeper",
                "",
                "a | b",
                "1 | 2",
                "",
                "  keep",
                "    this",
                "",
                "5 < 6 AB café &unknown; [a cat]",
            ],
        );
    }

    #[test]
    fn a_page_becomes_markdown() {
        let page = read(PAGE, true);
        reads(
            &page.text,
            &[
                "# Big news",
                "",
                "One **bold** word,",
                "a [link](/x?a=1&b=2).",
                "",
                "- first",
                "- second",
                "  1. deep",
                "  2. deeper",
                "",
                "a | b",
                "1 | 2",
                "",
                "```",
                "  keep",
                "    this",
                "```",
                "",
                "5 < 6 AB café &unknown; [a cat]",
            ],
        );
    }

    fn reads(text: &str, lines: &[&str]) {
        assert_eq!(text.lines().collect::<Vec<_>>(), lines, "{text}");
    }

    #[test]
    fn broken_pages_give_what_there_is() {
        for (page, expected) in [
            ("a < b and c > d", "a < b and c > d"),
            ("<p>open <b>and never", "open and never"),
            ("<script>never closed", ""),
            ("text<", "text<"),
            ("<p title='a > b'>inside</p>", "inside"),
            ("<p title='never closed>inside</p>", "inside"),
            ("</p></ul></ol></pre>fine", "fine"),
            ("&#0;&#xD800;&", "\u{FFFD}\u{FFFD}&"),
        ] {
            assert_eq!(read(page, false).text, expected, "{page}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read(page in "[<>/a-z&;#=\"' !é-]{0,200}", markdown: bool) {
            read(&page, markdown);
        }

        #[test]
        fn words_survive(words in proptest::collection::vec("[a-z]{1,8}", 1..20)) {
            let page = words.iter().map(|word| format!("<div><p>{word}</p></div>")).collect::<String>();
            let text = read(&page, false).text;
            prop_assert_eq!(text.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
