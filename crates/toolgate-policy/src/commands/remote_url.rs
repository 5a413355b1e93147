//! Reads which address a command gives to a remote. A person who approves the command approves this very address; what a
//! script does to git's configuration nobody was shown.

use super::simple_command::{Argument, SimpleCommand};
use crate::autoloaded::is_plain_url;

/// The setting of git that `git remote set-url [--push] NAME URL` changes, and its new value; none if a word of it isn't known
/// beforehand, or if git would run a program for such an address.
pub(crate) fn remote_url(command: &SimpleCommand) -> Option<(String, String)> {
    let words: Vec<&str> = command.without_globals().into_iter().map(Argument::known).collect::<Option<_>>()?;
    let (name, key, url) = match words[..] {
        ["git", "remote", "set-url", name, url] => (name, "url", url),
        ["git", "remote", "set-url", "--push", name, url] => (name, "pushurl", url),
        _ => return None,
    };
    let is_plain = command.is_known() && !name.starts_with('-') && is_plain_url(url);
    is_plain.then(|| (format!("remote.{name}.{key}"), url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::{PathContext, analyze};
    use super::*;

    fn read(command: &str) -> Option<(String, String)> {
        let analysis = analyze(command, "/w", &PathContext::new(["/w"], "/home/me"));
        analysis.parts.iter().find_map(remote_url)
    }

    #[test]
    fn only_what_is_written_out_is_read() {
        let cases = [
            ("git remote set-url origin https://e.org/a.git", Some(("remote.origin.url", "https://e.org/a.git"))),
            ("git -C sub remote set-url up git@e.org:a.git", Some(("remote.up.url", "git@e.org:a.git"))),
            ("git remote set-url --push origin ../b.git", Some(("remote.origin.pushurl", "../b.git"))),
            ("git remote set-url origin 'ext::sh -c id'", None),
            ("git remote set-url origin $URL", None),
            ("git remote set-url --add origin https://e.org/a.git", None),
            ("git remote set-url origin https://e.org/a.git https://e.org/b.git", None),
            ("git remote add origin https://e.org/a.git", None),
            ("sh set-url.sh origin https://e.org/a.git", None),
        ];
        for (command, expected) in cases {
            let expected = expected.map(|(setting, url)| (setting.to_owned(), url.to_owned()));
            assert_eq!(read(command), expected, "{command}");
        }
    }
}
