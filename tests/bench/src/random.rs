//! Numbers that are drawn from a seed and stay the same on every machine and in every version.

/// The generator known as SplitMix64: small, and good enough to draw words with.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// For one purpose of a run; another purpose draws other numbers.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let mut random = Self(seed);
        for byte in purpose.bytes() {
            random.0 ^= u64::from(byte);
            random.next();
        }
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or_default()) / 4_294_967_296.0
    }

    /// Less than `count`; 0 when there is nothing to choose from.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let wide = u128::from(self.next()) * (count as u128);
        usize::try_from(wide >> 64).unwrap_or_default()
    }

    /// Whether something happens that happens in this share of all cases.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// One of them. There must be one.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One of these texts. There must be one.
    pub(crate) fn pick_text(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    /// A length whose logarithm is normally distributed around that of `median`.
    pub(crate) fn length(&mut self, median: f64, spread: f64, least: usize) -> usize {
        let normal: f64 = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        whole((median.ln() + spread * normal).exp()).max(least)
    }

    /// A place in a list that is sorted by frequency: as often one of the first ten as one of the next ninety.
    pub(crate) fn log_rank(&mut self, from: u32, to: u32) -> usize {
        let (low, high) = (f64::from(from.max(1)).ln(), f64::from(to.max(from).max(1)).ln());
        whole((low + self.unit() * (high - low)).exp())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes an integer in no other way; what is too large saturates"
)]
fn whole(number: f64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_numbers_and_another_purpose_others() {
        let draw = |purpose: &str| {
            let mut random = Random::new(7, purpose);
            [random.below(1_000), random.below(1_000), random.below(1_000)]
        };
        assert_eq!(draw("a"), draw("a"));
        assert_ne!(draw("a"), draw("b"));
    }

    #[test]
    fn ranks_and_lengths_stay_within_their_bounds() {
        let mut random = Random::new(1, "bounds");
        for _ in 0..1_000 {
            assert!((3..=50).contains(&random.log_rank(3, 50)));
            assert!(random.length(10.0, 0.6, 3) >= 3);
            assert!(random.below(5) < 5);
        }
        assert_eq!(random.below(0), 0);
    }
}
