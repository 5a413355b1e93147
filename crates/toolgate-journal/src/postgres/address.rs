//! The address of a database, as PostgreSQL's own clients take it: a URL, or `key=value` pairs. What is said about
//! encryption (`sslmode`, `sslrootcert`, `sslcert`, `sslkey`) is read here, as the client library knows only a part of it; the
//! library reads the rest.

use std::ops::Range;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;

use super::tls::{TlsSettings, TlsValues};

/// Nothing of the address is repeated: it may hold a password.
const UNREADABLE: &str = "the database's address can't be read; write it as `postgres://user:password@host/database`";

/// Reads an address.
pub(super) fn parse(address: &str) -> Result<(Config, TlsSettings), String> {
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme));
    let (rest, values) = match is_url {
        true => of_url(address),
        false => of_pairs(address),
    }
    .ok_or(UNREADABLE)?;
    let mut config: Config = rest.parse().map_err(|_| UNREADABLE)?;
    let tls = TlsSettings::new(values)?;
    config.ssl_mode(tls.mode);
    Ok((config, tls))
}

fn place_of<'a>(values: &'a mut TlsValues, key: &str) -> Option<&'a mut Option<String>> {
    match key {
        "sslmode" => Some(&mut values.sslmode),
        "sslrootcert" => Some(&mut values.sslrootcert),
        "sslcert" => Some(&mut values.sslcert),
        "sslkey" => Some(&mut values.sslkey),
        _ => None,
    }
}

/// Takes what is about encryption out of a URL's query.
fn of_url(url: &str) -> Option<(String, TlsValues)> {
    // A `?` before the `@` belongs to the password.
    let credentials = url.find('@').unwrap_or(0);
    let Some(start) = url[credentials..].find('?').map(|place| credentials + place) else {
        return Some((url.to_owned(), TlsValues::default()));
    };
    let (mut values, mut rest) = (TlsValues::default(), Vec::new());
    for pair in url[start + 1..].split('&') {
        let (key, value) = pair.split_once('=')?;
        let key = percent_decode_str(key).decode_utf8().ok()?;
        match place_of(&mut values, &key) {
            Some(place) => *place = Some(percent_decode_str(value).decode_utf8().ok()?.into_owned()),
            None => rest.push(pair),
        }
    }
    let separator = if rest.is_empty() { "" } else { "?" };
    Some((format!("{}{separator}{}", &url[..start], rest.join("&")), values))
}

/// Takes what is about encryption out of `key=value` pairs. A value may be quoted, and a backslash takes the next character as it is.
fn of_pairs(pairs: &str) -> Option<(String, TlsValues)> {
    let (mut values, mut rest, mut place) = (TlsValues::default(), String::new(), 0);
    while let Some(start) = find_from(pairs, place, |character| !character.is_whitespace()) {
        let equals = start + pairs[start..].find('=')?;
        let (value, range) = value_from(pairs, equals + 1)?;
        match place_of(&mut values, pairs[start..equals].trim_end()) {
            Some(kept) => *kept = Some(value),
            None => {
                rest.push_str(&pairs[start..range.end]);
                rest.push(' ');
            }
        }
        place = range.end;
    }
    Some((rest, values))
}

/// The value that begins here, after spaces, and where it stands.
fn value_from(pairs: &str, place: usize) -> Option<(String, Range<usize>)> {
    let start = find_from(pairs, place, |character| !character.is_whitespace())?;
    let is_quoted = pairs[start..].starts_with('\'');
    let mut value = String::new();
    let mut characters = pairs[start..].char_indices().skip(usize::from(is_quoted));
    while let Some((offset, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next()?.1),
            '\'' if is_quoted => return Some((value, start..start + offset + 1)),
            space if !is_quoted && space.is_whitespace() => return Some((value, start..start + offset)),
            other => value.push(other),
        }
    }
    (!is_quoted).then_some((value, start..pairs.len()))
}

fn find_from(text: &str, place: usize, is_it: impl Fn(char) -> bool) -> Option<usize> {
    text.get(place..)?.find(is_it).map(|offset| place + offset)
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    #[test]
    fn urls_and_pairs_say_the_same() {
        let same = [
            "postgres://ada:secret@host/tasks?sslmode=verify-full&sslrootcert=/etc/my%20ca.pem&connect_timeout=3",
            "postgresql://ada:secret@host/tasks?connect_timeout=3&sslrootcert=/etc/my%20ca.pem",
            r"user=ada sslmode=verify-full password = secret host=host sslrootcert='/etc/my ca.pem' dbname=tasks connect_timeout=3",
            r"user=ada password=secret host=host dbname=tasks connect_timeout=3 sslrootcert=/etc/my\ ca.pem",
        ];
        let (sslmode, sslrootcert) = (Some("verify-full".into()), Some("/etc/my ca.pem".into()));
        let expected = TlsSettings::new(TlsValues { sslmode, sslrootcert, ..TlsValues::default() }).unwrap();
        for address in same {
            let (config, tls) = parse(address).unwrap();
            assert_eq!(tls, expected, "{address}");
            assert_eq!((config.get_user(), config.get_dbname()), (Some("ada"), Some("tasks")), "{address}");
            assert_eq!(config.get_password(), Some(&b"secret"[..]), "{address}");
            assert_eq!(config.get_connect_timeout().map(|timeout| timeout.as_secs()), Some(3), "{address}");
        }
    }

    #[test]
    fn each_mode_is_known() {
        let table = [
            ("", SslMode::Prefer),
            ("?sslmode=disable", SslMode::Disable),
            ("?sslmode=prefer", SslMode::Prefer),
            ("?sslmode=require", SslMode::Require),
            ("?sslmode=verify-ca", SslMode::Require),
            ("?sslmode=verify-full&sslrootcert=system", SslMode::Require),
            ("?sslrootcert=ca.pem", SslMode::Require),
        ];
        for (query, mode) in table {
            let (config, tls) = parse(&format!("postgres://ada:what?@host/tasks{query}")).unwrap();
            assert_eq!((config.get_ssl_mode(), tls.mode), (mode, mode), "{query}");
            assert_eq!(config.get_password(), Some(&b"what?"[..]), "{query}");
        }
    }

    #[test]
    fn what_contradicts_itself_or_is_unknown_is_refused() {
        let table = [
            ("postgres://ada@host/tasks?sslmode=verify", "sslmode"),
            ("postgres://ada@host/tasks?sslmode=prefer&sslrootcert=ca.pem", "verify-full"),
            ("postgres://ada@host/tasks?sslmode=disable&sslrootcert=ca.pem", "verify-full"),
            ("postgres://ada@host/tasks?sslcert=me.pem", "belong together"),
            ("postgres://ada@host/tasks?sslmode=verify-full&sslkey=me.key", "belong together"),
            ("postgres://ada@host/tasks?sslmode=disable&sslcert=me.pem&sslkey=me.key", "sslmode=disable"),
            ("postgres://ada@host/tasks?sslmode", "can't be read"),
            ("user=ada password='secret", "can't be read"),
            ("user=ada sslmode", "can't be read"),
        ];
        for (address, words) in table {
            let refused = parse(address).unwrap_err();
            assert!(refused.contains(words) && !refused.contains("secret"), "{address}: {refused}");
        }
    }
}
