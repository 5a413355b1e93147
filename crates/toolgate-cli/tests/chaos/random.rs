//! The one source of chance of a run: SplitMix64, twelve lines that give the same numbers for a seed on every machine
//! and with every version of every crate. A seed in a report is worth nothing if an update of a generator changes its
//! meaning.

/// Numbers that follow from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `limit - 1`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or_default()
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// The index of one of these weights, heavier ones more often.
    pub(crate) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        weights
            .iter()
            .position(|weight| {
                let is_here = left < *weight;
                left = left.saturating_sub(*weight);
                is_here
            })
            .unwrap_or_default()
    }
}

#[test]
fn a_seed_always_means_the_same_numbers() {
    let mut random = Random::new(1_234_567);
    let numbers: Vec<u64> = (0..3).map(|_| random.next()).collect();
    assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
}
