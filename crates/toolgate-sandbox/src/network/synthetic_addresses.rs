//! Synthetic addresses: inside a sandbox a name resolves to an address that stands for it. The addresses come from a range
//! that no network uses. When a command connects to one, the proxy knows which name is meant.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// 198.18.0.0/15 is reserved for benchmarks of network devices (RFC 2544). The nameserver has the first address in it.
const RANGE: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
const PREFIX_LENGTH: u32 = 15;
const FIRST_OFFSET: u32 = 2;

/// Names that one sandbox can look up.
const MAX_NAMES: usize = 4096;

/// Which synthetic address stands for which name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SyntheticAddresses {
    by_name: BTreeMap<String, Ipv4Addr>,
    by_address: BTreeMap<Ipv4Addr, String>,
}

impl SyntheticAddresses {
    /// The address that stands for a name; none when there are too many already.
    pub(super) fn address_of(&mut self, name: &str) -> Option<Ipv4Addr> {
        if let Some(known) = self.by_name.get(name) {
            return Some(*known);
        }
        let number = u32::try_from(self.by_name.len()).ok().filter(|_| self.by_name.len() < MAX_NAMES)?;
        let address = Ipv4Addr::from_bits(RANGE + FIRST_OFFSET + number);
        self.by_name.insert(name.to_owned(), address);
        self.by_address.insert(address, name.to_owned());
        Some(address)
    }

    /// The name that an address stands for.
    pub(super) fn name_of(&self, address: Ipv4Addr) -> Option<&str> {
        self.by_address.get(&address).map(String::as_str)
    }
}

/// Whether an address is in the range of synthetic addresses.
pub(super) fn is_synthetic(address: Ipv4Addr) -> bool {
    let host_bits = u32::BITS - PREFIX_LENGTH;
    address.to_bits() >> host_bits == RANGE >> host_bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_address_and_the_number_of_names_is_limited() {
        let mut names = SyntheticAddresses::default();
        let first = names.address_of("a.example").unwrap();
        let second = names.address_of("b.example").unwrap();
        assert_eq!(names.address_of("a.example"), Some(first));
        assert_eq!((names.name_of(first), names.name_of(second)), (Some("a.example"), Some("b.example")));
        assert!(is_synthetic(first) && is_synthetic(second) && !is_synthetic(Ipv4Addr::new(198, 20, 0, 1)));
        assert_eq!(names.name_of(Ipv4Addr::new(198, 18, 9, 9)), None);
        let last = (0..MAX_NAMES).filter_map(|number| names.address_of(&format!("n{number}"))).last().unwrap();
        assert!(is_synthetic(last));
        assert_eq!(names.address_of("one-too-many"), None);
    }
}
