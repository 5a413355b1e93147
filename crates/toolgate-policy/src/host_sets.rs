//! Named sets of hosts, such as `@registries`: data in `host_sets.toml`, which a rule names with one word.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::host::Host;

/// The set of package registries, as it is written in rules and grants.
pub const REGISTRIES: &str = "@registries";

/// Whether a host is a package registry.
pub fn is_registry(host: &str) -> bool {
    Host::read(host).is_ok_and(|host| contains(&REGISTRIES[1..], &host.to_string()))
}

/// The hosts of each set, by its name.
static SETS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let sets: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/host_sets.json")))
            .expect("the built-in table is tested");
    sets.into_iter().map(|(name, groups)| (name, groups.into_values().flatten().collect())).collect()
});

/// The hosts of a set, as patterns of rules.
pub(crate) fn hosts_of(set: &str) -> Option<&'static [String]> {
    SETS.get(set).map(Vec::as_slice)
}

/// The names of all sets.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SETS.keys().map(String::as_str)
}

/// Whether a host is in a set.
pub(crate) fn contains(set: &str, host: &str) -> bool {
    let is_host = |listed: &String| match listed.strip_prefix('*') {
        Some(ending) => host.ends_with(ending),
        None => host == listed,
    };
    hosts_of(set).is_some_and(|hosts| hosts.iter().any(is_host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_of_a_set_is_public_and_written_plainly() {
        for set in names() {
            for listed in hosts_of(set).unwrap() {
                let name = listed.strip_prefix("*.").unwrap_or(listed);
                let host = Host::read(name).unwrap();
                assert!(host.block().is_none() && host.to_string() == name, "{listed}");
            }
        }
    }

    #[test]
    fn a_host_is_in_its_set_by_its_whole_name() {
        for (host, expected) in [
            ("pypi.org", true),
            ("de.archive.ubuntu.com", true),
            ("evil-pypi.org", false),
            ("pypi.org.evil.example", false),
            ("evilarchive.ubuntu.com", false),
            ("github.com", false),
        ] {
            assert_eq!(is_registry(host), expected, "{host}");
        }
    }
}
