//! Which values of the runtime's own environment are secrets. They are then known byte for byte, and replaced wherever
//! they turn up; so a value that occurs in ordinary text must not be taken.

use crate::secret_names::{names_a_secret, plain};
use crate::value_check::{is_number, is_path, is_placeholder};

/// Shorter values are told from other text too poorly.
pub(crate) const SHORTEST: usize = 6;

/// Shorter keys and tokens are no real ones, but what a local server takes for one: `ollama`, `none123`.
const SHORTEST_KEY: usize = 8;

/// Values that are set for secrets in development and occur everywhere else too.
const COMMON: &str = "\
    password passwd secret token default postgres postgresql mysql mariadb mongodb redis rabbitmq administrator \
    localhost production development staging testing username database public private github gitlab docker enabled \
    disabled required optional unknown undefined anonymous toolgate";

/// Variables whose values occur in ordinary output and so can't serve as a secret.
const ORDINARY: &[&str] = &["USER", "LOGNAME", "HOME", "HOSTNAME", "SHELL", "PWD", "LANG", "TERM", "EDITOR", "PATH"];

/// The secrets among `variables`: values whose names say so or stand in `extra_names`, and passwords inside URLs.
pub fn secrets_of_environment(
    variables: impl Iterator<Item = (String, String)>,
    extra_names: &[String],
) -> Vec<(String, String)> {
    let variables: Vec<(String, String)> = variables.collect();
    let is_extra = |name: &str| extra_names.iter().any(|extra| extra.eq_ignore_ascii_case(name));
    let mut secrets = Vec::new();
    for (name, value) in &variables {
        if is_extra(name) || is_secret_name(name) {
            secrets.push((name.clone(), value.trim().to_owned()));
        }
        secrets.extend(password_of_url(value).map(|password| (name.clone(), password)));
    }
    let is_long = |name: &str, value: &str| {
        let is_key = plain(name).ends_with("KEY") || plain(name).ends_with("TOKEN");
        is_extra(name) || !is_key || value.chars().count() >= SHORTEST_KEY
    };
    secrets.retain(|(name, value)| is_long(name, value) && is_telling(value) && !occurs_anyway(value, &variables));
    secrets
}

fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let holds = ["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "CREDENTIAL"].iter().any(|part| upper.contains(part));
    let ends = ["_KEY", "_PAT", "_PWD", "_AUTH", "_PASS", "_DSN"].iter().any(|ending| upper.ends_with(ending));
    let public = plain(name).contains("PUBLICKEY");
    !public && (holds || ends || names_a_secret(name))
}

/// Whether the value is unlikely to stand in text that has nothing to do with it.
fn is_telling(value: &str) -> bool {
    let bytes = value.as_bytes();
    let common = COMMON.split(' ').any(|word| value.eq_ignore_ascii_case(word));
    // An eight-digit number may be a password; a shorter one is a port, a year or a count.
    let number = is_number(bytes) && !(value.len() >= 8 && bytes.iter().all(u8::is_ascii_digit));
    let path = is_path(bytes) && !value.contains('@');
    // A long value may hold such a word by chance.
    let placeholder = value.len() < 24 && is_placeholder(bytes);
    value.chars().count() >= SHORTEST && !common && !number && !path && !placeholder
}

/// Whether the value is also that of a variable which everything prints, or a directory of the search path.
fn occurs_anyway(value: &str, variables: &[(String, String)]) -> bool {
    variables
        .iter()
        .filter(|(name, _)| ORDINARY.contains(&name.as_str()))
        .any(|(_, other)| other.split(':').any(|part| part == value || part.rsplit('/').next() == Some(value)))
}

/// The password in `scheme://user:password@host`.
fn password_of_url(value: &str) -> Option<String> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    Some(password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(name: &str, value: &str) -> bool {
        let path = ("PATH", "/usr/bin:/opt/secret-tools");
        let variables = [("USER", "johanna"), ("HOME", "/home/johanna"), path, (name, value)];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        !secrets_of_environment(variables, &["MY_PIN".to_owned()]).is_empty()
    }

    #[test]
    fn which_variables_are_secrets() {
        let secrets = [
            ("GITHUB_TOKEN", "abc123def"),
            ("API_TOKEN", "supersecret"),
            ("AWS_SECRET_ACCESS_KEY", "/K7MDENG2bPxRfiCYwJalrXUtnFEMI"),
            ("PGPASSWORD", "hunter2"),
            ("DB_PASSWD", "letmein"),
            ("SECRET_KEY_BASE", "0123456789abcdef"),
            ("GOOGLE_CREDENTIALS", "{\"type\": \"service_account\""),
            ("MYSQL_PWD", "12345678"),
            ("MY_PIN", "0000-1111"),
            ("DATABASE_URL", "postgres://app:n0t-common@db/app"),
        ];
        for (name, value) in secrets {
            assert!(taken(name, value), "{name}={value} is a secret");
        }
        let others = [
            ("EDITOR", "vim-with-plugins"),
            ("A_TOKEN", "short"),
            ("OPENAI_API_KEY", "ollama"),
            ("API_TOKEN", "letmein"),
            ("A_TOKEN", "true"),
            ("MAX_KEY", "123456"),
            ("DB_PASSWORD", "postgres"),
            ("DB_PASSWORD", "johanna"),
            ("TOOLS_KEY", "secret-tools"),
            ("SSH_KEY", "/home/johanna/.ssh/id_ed25519"),
            ("DB_PASSWORD_FILE", "/run/secrets/db"),
            ("API_KEY", "changeme"),
            ("SIGNING_PUBLIC_KEY", "abc123def456"),
            ("DATABASE_URL", "postgres://db/app"),
            ("PWD", "/home/johanna/project"),
        ];
        for (name, value) in others {
            assert!(!taken(name, value), "{name}={value} is no secret");
        }
    }

    #[test]
    fn of_a_url_only_the_password_is_taken() {
        let variables = vec![("DATABASE_URL".to_owned(), "postgres://app:s3cr3t-pw@db:5432/app".to_owned())];
        let expected = [("DATABASE_URL".to_owned(), "s3cr3t-pw".to_owned())];
        assert_eq!(secrets_of_environment(variables.into_iter(), &[]), expected);
    }
}
