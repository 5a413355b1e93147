//! Hosts in a normalized form, so that no spelling of an address bypasses a rule, and the reserved ranges that a rule
//! has to name before a call may connect to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// A host in the form in which rules compare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    /// A domain name: lower case, no final dot.
    Name(String),
    /// An address. IPv6 forms that embed an IPv4 address are converted to that address.
    Address(IpAddr),
}

/// Why a host is denied before any rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostFault {
    Empty,
    NotAscii,
    BadLetter,
    BadLabel,
    OddAddress,
}

impl HostFault {
    /// The problem, and what to write instead.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Empty => "The host is empty; name one.",
            Self::NotAscii => {
                "The host has letters beyond ASCII, which can look like others; write it as punycode (`xn--…`)."
            }
            Self::BadLetter => "The host holds a character that no host has; give the name or address alone.",
            Self::BadLabel => "The host has an empty or overlong part between its dots; write the plain name.",
            Self::OddAddress => {
                "The host is an address in an unusual spelling; write it as four decimal numbers, such as `192.0.2.1`."
            }
        }
    }
}

impl Host {
    /// Parses a host as a caller or a rule writes it.
    pub(crate) fn read(text: &str) -> Result<Self, HostFault> {
        if text.is_empty() {
            return Err(HostFault::Empty);
        }
        if !text.is_ascii() {
            return Err(HostFault::NotAscii);
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<Ipv6Addr>() {
            return Ok(Self::Address(plain(address)));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        check_name(&name)?;
        Ok(Self::Name(name))
    }

    /// The reserved block that this host is in, if any.
    pub(crate) fn block(&self) -> Option<&'static ReservedBlock> {
        match self {
            Self::Address(address) => {
                let holding = BLOCKS.iter().filter(|block| block.range.is_some_and(|range| range.contains(*address)));
                holding.max_by_key(|block| block.range.map(|range| range.prefix))
            }
            Self::Name(name) => NAMES.iter().find(|(pattern, _)| is_reserved(pattern, name)).map(|(_, block)| block),
        }
    }

    /// Whether it is the loopback of the machine, or of the sandbox that uses it.
    pub(crate) fn is_loopback(&self) -> bool {
        self.block().is_some_and(|block| block.kind == LOOPBACK)
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Converts `::ffff:a.b.c.d` and `64:ff9b::a.b.c.d` to the IPv4 address a.b.c.d.
fn plain(address: Ipv6Addr) -> IpAddr {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into(),
        _ => address.to_ipv4_mapped().map_or(address.into(), IpAddr::from),
    }
}

fn check_name(name: &str) -> Result<(), HostFault> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
        return Err(HostFault::BadLetter);
    }
    if name.len() > 253 || name.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return Err(HostFault::BadLabel);
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    // Every resolver takes a host that ends in a number for an address, and resolvers disagree on which one this is.
    if hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HostFault::OddAddress);
    }
    Ok(())
}

/// A CIDR range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CidrRange {
    base: IpAddr,
    prefix: u8,
}

impl CidrRange {
    /// Parses `address/prefix`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (base, prefix) = text.split_once('/')?;
        let (base, prefix) = (base.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?);
        // An IPv4 range in IPv6 notation would never match, because such addresses are converted to IPv4.
        let dressed = matches!(base, IpAddr::V6(base) if plain(base).is_ipv4());
        (prefix <= width(base) && !dressed).then_some(Self { base, prefix })
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let unused = u32::from(width(self.base) - self.prefix);
        self.base.is_ipv4() == address.is_ipv4()
            && (bits(self.base) ^ bits(address)).checked_shr(unused).unwrap_or(0) == 0
    }

    /// Whether this range is entirely inside the other.
    pub(crate) fn is_within(self, other: Self) -> bool {
        self.prefix >= other.prefix && other.contains(self.base)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Hosts of this machine, its network or its cloud. They are denied unless a rule names them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReservedBlock {
    /// The kind of hosts, in words.
    pub(crate) kind: &'static str,
    /// Their addresses; none for a block of names.
    pub(crate) range: Option<CidrRange>,
}

const LOOPBACK: &str = "this machine itself";
const PRIVATE: &str = "a private network";
const LINK: &str = "the local link";
const METADATA: &str = "a cloud's metadata service";
const RESERVED: &str = "a reserved range";

/// Metadata services have blocks of their own, so that a rule for the surrounding range doesn't open them.
#[rustfmt::skip]
const RANGES: &[(&str, &str)] = &[
    ("0.0.0.0/8", LOOPBACK), ("127.0.0.0/8", LOOPBACK),
    ("10.0.0.0/8", PRIVATE), ("172.16.0.0/12", PRIVATE), ("192.168.0.0/16", PRIVATE), ("100.64.0.0/10", PRIVATE),
    ("169.254.0.0/16", LINK),
    ("169.254.169.254/32", METADATA), ("169.254.170.2/32", METADATA), ("169.254.170.23/32", METADATA),
    ("192.0.0.192/32", METADATA), ("100.100.100.200/32", METADATA), ("168.63.129.16/32", METADATA),
    ("192.0.0.0/24", RESERVED), ("198.18.0.0/15", RESERVED), ("224.0.0.0/4", RESERVED), ("240.0.0.0/4", RESERVED),
    ("::/96", RESERVED), ("::/128", LOOPBACK), ("::1/128", LOOPBACK),
    ("fc00::/7", PRIVATE), ("fec0::/10", PRIVATE), ("fe80::/10", LINK),
    ("fd00:ec2::254/128", METADATA), ("fd00:ec2::23/128", METADATA), ("fd20:ce::254/128", METADATA),
    ("64:ff9b:1::/48", RESERVED), ("2001::/32", RESERVED), ("2002::/16", RESERVED), ("ff00::/8", RESERVED),
];

static BLOCKS: LazyLock<Vec<ReservedBlock>> = LazyLock::new(|| {
    RANGES.iter().map(|(range, kind)| ReservedBlock { kind, range: CidrRange::read(range) }).collect()
});

const fn named(kind: &'static str) -> ReservedBlock {
    ReservedBlock { kind, range: None }
}

/// Names that resolve to such addresses; `.x` matches every name with this ending.
#[rustfmt::skip]
static NAMES: &[(&str, ReservedBlock)] = &[
    ("localhost", named(LOOPBACK)), (".localhost", named(LOOPBACK)), ("localhost.localdomain", named(LOOPBACK)),
    ("ip6-localhost", named(LOOPBACK)), ("ip6-loopback", named(LOOPBACK)),
    ("metadata", named(METADATA)), ("metadata.google.internal", named(METADATA)), ("metadata.goog", named(METADATA)),
    ("instance-data", named(METADATA)), ("instance-data.ec2.internal", named(METADATA)),
    (".internal", named(PRIVATE)), (".local", named(PRIVATE)), (".localdomain", named(PRIVATE)),
    (".home.arpa", named(PRIVATE)),
];

fn is_reserved(pattern: &str, name: &str) -> bool {
    if pattern.starts_with('.') { name.ends_with(pattern) } else { name == pattern }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_host_become_one() {
        for (text, expected) in [
            ("Example.COM.", "example.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("_dmarc.example.com", "_dmarc.example.com"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("[::1]", "::1"),
            ("0:0:0:0:0:0:0:1", "::1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::FFFF:7f00:1", "127.0.0.1"),
            ("64:ff9b::a9fe:a9fe", "169.254.169.254"),
        ] {
            assert_eq!(Host::read(text).map(|host| host.to_string()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_host_is_refused() {
        for (text, expected) in [
            ("", HostFault::Empty),
            ("bücher.example", HostFault::NotAscii),
            ("аpple.com", HostFault::NotAscii),
            ("127。0。0。1", HostFault::NotAscii),
            ("a b", HostFault::BadLetter),
            ("a\0b.com", HostFault::BadLetter),
            ("a\n.com", HostFault::BadLetter),
            ("user@host", HostFault::BadLetter),
            ("host:80", HostFault::BadLetter),
            ("a/b", HostFault::BadLetter),
            ("fe80::1%eth0", HostFault::BadLetter),
            ("a..b", HostFault::BadLabel),
            ("example.com..", HostFault::BadLabel),
            (".", HostFault::BadLabel),
            ("0x7f.1", HostFault::OddAddress),
            ("2130706433", HostFault::OddAddress),
            ("127.1", HostFault::OddAddress),
            ("0177.0.0.1", HostFault::OddAddress),
            ("0x7f000001", HostFault::OddAddress),
            ("1.2.3.4.5", HostFault::OddAddress),
            ("127.0.0.0x", HostFault::OddAddress),
        ] {
            assert_eq!(Host::read(text), Err(expected), "{text:?}");
        }
        assert_eq!(Host::read(&"a".repeat(64)), Err(HostFault::BadLabel));
    }

    #[test]
    fn reserved_blocks_are_recognised_and_the_narrowest_is_meant() {
        for (text, expected) in [
            ("127.8.8.8", Some(LOOPBACK)),
            ("0.0.0.0", Some(LOOPBACK)),
            ("localhost", Some(LOOPBACK)),
            ("a.b.LOCALHOST.", Some(LOOPBACK)),
            ("::1", Some(LOOPBACK)),
            ("::", Some(LOOPBACK)),
            ("::ffff:127.0.0.1", Some(LOOPBACK)),
            ("10.1.2.3", Some(PRIVATE)),
            ("172.31.255.255", Some(PRIVATE)),
            ("172.32.0.0", None),
            ("192.168.0.1", Some(PRIVATE)),
            ("100.64.0.1", Some(PRIVATE)),
            ("100.100.100.200", Some(METADATA)),
            ("169.254.1.1", Some(LINK)),
            ("169.254.169.254", Some(METADATA)),
            ("metadata.google.internal", Some(METADATA)),
            ("fd00:ec2::254", Some(METADATA)),
            ("fd12::1", Some(PRIVATE)),
            ("fe80::1", Some(LINK)),
            ("2002:7f00:1::", Some(RESERVED)),
            ("::7f00:1", Some(RESERVED)),
            ("224.0.0.1", Some(RESERVED)),
            ("printer.local", Some(PRIVATE)),
            ("8.8.8.8", None),
            ("2606:4700::1111", None),
            ("example.com", None),
            ("notlocalhost", None),
        ] {
            assert_eq!(Host::read(text).unwrap().block().map(|block| block.kind), expected, "{text}");
        }
    }

    #[test]
    fn every_built_in_range_can_be_read() {
        assert!(BLOCKS.iter().all(|block| block.range.is_some()));
    }

    #[test]
    fn ranges() {
        let range = |text| CidrRange::read(text).unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(range("0.0.0.0/0").contains(address("8.8.8.8")));
        assert!(!range("0.0.0.0/0").contains(address("::1")));
        assert!(range("::/0").contains(address("::1")));
        assert!(
            range("10.0.0.0/8").contains(address("10.9.9.9")) && !range("10.0.0.0/8").contains(address("11.0.0.0"))
        );
        assert!(
            range("10.1.0.0/16").is_within(range("10.0.0.0/8")) && !range("0.0.0.0/0").is_within(range("10.0.0.0/8"))
        );
        for text in ["10.0.0.0/33", "::/129", "10.0.0.0", "x/8", "10.0.0.0/x", "10.0.0.0/-1", "::ffff:10.0.0.0/104"] {
            assert_eq!(CidrRange::read(text), None, "{text}");
        }
    }
}
