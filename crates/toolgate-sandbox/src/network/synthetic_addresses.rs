//! Addresses that stand for names inside a sandbox. They come from a range that no network uses, and mean something only
//! to the relay, which knows the name from the address that a command connects to.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// 198.18.0.0/15 is set aside for measurements inside laboratories. The first address of it is the nameserver's.
const RANGE: u32 = 198 << 24 | 18 << 16;
const PREFIX: u32 = 15;
const FIRST: u32 = 2;

/// Names that one sandbox can ask for.
const MOST: usize = 4096;

/// Which name has which address.
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
        let number = u32::try_from(self.by_name.len()).ok().filter(|_| self.by_name.len() < MOST)?;
        let address = Ipv4Addr::from_bits(RANGE + FIRST + number);
        self.by_name.insert(name.to_owned(), address);
        self.by_address.insert(address, name.to_owned());
        Some(address)
    }

    /// The name that an address stands for.
    pub(super) fn name_of(&self, address: Ipv4Addr) -> Option<&str> {
        self.by_address.get(&address).map(String::as_str)
    }
}

/// Whether an address could stand for a name.
pub(super) fn is_synthetic(address: Ipv4Addr) -> bool {
    address.to_bits() >> (32 - PREFIX) == RANGE >> (32 - PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_address_and_there_is_an_end_to_names() {
        let mut names = SyntheticAddresses::default();
        let first = names.address_of("a.example").unwrap();
        let second = names.address_of("b.example").unwrap();
        assert_eq!(names.address_of("a.example"), Some(first));
        assert_eq!((names.name_of(first), names.name_of(second)), (Some("a.example"), Some("b.example")));
        assert!(is_synthetic(first) && is_synthetic(second) && !is_synthetic(Ipv4Addr::new(198, 20, 0, 1)));
        assert_eq!(names.name_of(Ipv4Addr::new(198, 18, 9, 9)), None);
        let last = (0..MOST).filter_map(|number| names.address_of(&format!("n{number}"))).last().unwrap();
        assert!(is_synthetic(last));
        assert_eq!(names.address_of("one-too-many"), None);
    }
}
