//! Rules about hosts: a domain, everything beneath one (`*.example.com`), an address, a CIDR range, a named set
//! (`@registries`), or `*` for all.

use std::fmt;
use std::net::IpAddr;

use toolgate_config::ConfigFault;

use crate::host::{CidrRange, Host, ReservedBlock};
use crate::host_sets;

/// Matches every connection to such a host.
#[derive(Debug)]
pub(crate) struct HostRule {
    written: String,
    pattern: HostPattern,
}

#[derive(Debug)]
enum HostPattern {
    Any,
    Name(String),
    /// The suffix of a name, including its leading dot.
    Beneath(String),
    Address(IpAddr),
    Range(CidrRange),
    /// The name of a set, without its `@`.
    Set(String),
}

impl HostRule {
    pub(crate) fn new(written: &str) -> Result<Self, ConfigFault> {
        Ok(Self { written: written.to_owned(), pattern: read(written)? })
    }

    pub(crate) fn matches(&self, host: &Host) -> bool {
        match (&self.pattern, host) {
            (HostPattern::Any, _) => true,
            (HostPattern::Name(wanted), Host::Name(name)) => wanted == name,
            (HostPattern::Beneath(ending), Host::Name(name)) => name.ends_with(ending),
            (HostPattern::Address(wanted), Host::Address(address)) => wanted == address,
            (HostPattern::Range(range), Host::Address(address)) => range.contains(*address),
            (HostPattern::Set(set), Host::Name(name)) => host_sets::contains(set, name),
            _ => false,
        }
    }

    /// Whether the rule names this reserved host on purpose: by its name, its address, or a range within its block. A
    /// broader pattern that also covers the host doesn't count.
    pub(crate) fn names(&self, host: &Host, block: &ReservedBlock) -> bool {
        self.matches(host)
            && match &self.pattern {
                HostPattern::Name(_) | HostPattern::Address(_) => true,
                HostPattern::Range(range) => block.range.is_some_and(|whole| range.is_within(whole)),
                HostPattern::Any | HostPattern::Beneath(_) | HostPattern::Set(_) => false,
            }
    }

    pub(crate) fn matches_example(&self, example: &str) -> Result<bool, ConfigFault> {
        match Host::read(example) {
            Ok(host) => Ok(self.matches(&host)),
            Err(fault) => Err(ConfigFault::new(format!("The example `{example}` is not a host."), fault.reason())),
        }
    }
}

fn read(written: &str) -> Result<HostPattern, ConfigFault> {
    if written == "*" {
        return Ok(HostPattern::Any);
    }
    if let Some(set) = written.strip_prefix('@') {
        let known = host_sets::names().map(|name| format!("`@{name}`")).collect::<Vec<_>>().join(", ");
        return match host_sets::hosts_of(set) {
            Some(_) => Ok(HostPattern::Set(set.to_owned())),
            None => Err(unreadable(written, &format!("The named sets of hosts are: {known}."))),
        };
    }
    if let Some(range) = CidrRange::read(written) {
        return Ok(HostPattern::Range(range));
    }
    let (name, beneath) = match written.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (written, false),
    };
    match (Host::read(name), beneath) {
        (Ok(Host::Name(name)), false) => Ok(HostPattern::Name(name)),
        (Ok(Host::Name(name)), true) => Ok(HostPattern::Beneath(format!(".{name}"))),
        (Ok(Host::Address(address)), false) => Ok(HostPattern::Address(address)),
        (Ok(Host::Address(_)), true) => Err(unreadable(written, "Write a range, such as `10.0.0.0/8`.")),
        (Err(_), _) if written.contains("://") || written.contains(':') && !written.contains("::") => {
            Err(unreadable(written, "Leave out scheme and port: rules are about hosts."))
        }
        (Err(_), _) if written.contains('/') => Err(unreadable(written, "Write a range like `10.0.0.0/8`.")),
        (Err(_), _) if written.contains('*') => {
            Err(unreadable(written, "A `*` can only stand alone or in front: `*.example.com`."))
        }
        (Err(fault), _) => Err(unreadable(written, fault.reason())),
    }
}

fn unreadable(written: &str, hint: &str) -> ConfigFault {
    ConfigFault::new(format!("The host `{written}` can't be read."), hint)
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_by_name_ending_address_or_range() {
        for (pattern, host, expected) in [
            ("example.com", "EXAMPLE.com.", true),
            ("example.com", "www.example.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "badexample.com", false),
            ("10.0.0.0/8", "10.1.1.1", true),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("::1", "[0::1]", true),
            ("*", "anything.example", true),
            ("*", "1.1.1.1", true),
            ("@registries", "PyPI.org.", true),
            ("@registries", "registry.npmjs.org", true),
            ("@registries", "github.com", false),
            ("@registries", "151.101.0.223", false),
        ] {
            assert_eq!(HostRule::new(pattern).unwrap().matches_example(host), Ok(expected), "{pattern} {host}");
        }
    }

    #[test]
    fn only_a_rule_that_means_a_reserved_host_names_it() {
        for (pattern, host, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("localhost", "localhost", true),
            ("10.2.0.0/16", "10.2.3.4", true),
            ("10.0.0.0/8", "10.2.3.4", true),
            ("0.0.0.0/0", "10.2.3.4", false),
            ("8.0.0.0/6", "10.2.3.4", false),
            ("*", "localhost", false),
            ("*.localhost", "a.localhost", false),
            ("169.254.0.0/16", "169.254.169.254", false),
            ("169.254.169.254/32", "169.254.169.254", true),
        ] {
            let host = Host::read(host).unwrap();
            let named = HostRule::new(pattern).unwrap().names(&host, host.block().unwrap());
            assert_eq!(named, expected, "{pattern} {host}");
        }
    }

    #[test]
    fn unreadable_hosts_say_what_to_write() {
        for (pattern, expected) in [
            ("https://example.com", "scheme and port"),
            ("example.com:443", "scheme and port"),
            ("10.0.0.0/40", "range like"),
            ("ex*mple.com", "only stand alone or in front"),
            ("bücher.de", "punycode"),
            ("127.1", "four decimal numbers"),
            ("*.10.0.0.1", "range"),
            ("", "empty"),
            ("@registry", "`@registries`"),
        ] {
            let fault = HostRule::new(pattern).unwrap_err();
            assert!(format!("{fault:?}").contains(expected), "{pattern}: {fault:?}");
        }
    }
}
