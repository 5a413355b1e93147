//! MRR, recall and NDCG at 10.

/// Sums over questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scores {
    count: f64,
    reciprocal_rank: f64,
    recall: f64,
    gain: f64,
}

impl Scores {
    /// Counts one answer.
    pub(crate) fn count(&mut self, found: &[&str], expected: &[String]) {
        let is_hit = |path: &&str| expected.iter().any(|expected| expected == path);
        let discount = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
        let found = &found[..found.len().min(10)];
        let hits: Vec<usize> =
            found.iter().enumerate().filter(|(_, path)| is_hit(path)).map(|(rank, _)| rank).collect();
        let most = expected.len().min(10);
        self.count += 1.0;
        self.reciprocal_rank += hits.first().map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        self.recall += hits.len() as f64 / most.max(1) as f64;
        self.gain +=
            hits.iter().map(|rank| discount(*rank)).sum::<f64>() / (0..most).map(discount).sum::<f64>().max(1e-9);
    }

    /// Whether anything was asked.
    pub(crate) fn is_counted(&self) -> bool {
        self.count > 0.0
    }

    /// The mean reciprocal rank, the recall and NDCG.
    pub(crate) fn means(&self) -> [f64; 3] {
        [self.reciprocal_rank, self.recall, self.gain].map(|sum| sum / self.count.max(1.0))
    }

    /// Adds those of another set.
    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.reciprocal_rank += other.reciprocal_rank;
        self.recall += other.recall;
        self.gain += other.gain;
    }
}

/// Prints one line of the table.
pub(crate) fn print_row(set: &str, by: &str, scores: &Scores) {
    let Scores { count, reciprocal_rank, recall, gain } = scores;
    let average = |sum: &f64| sum / count.max(1.0);
    println!(
        "{set:<40}{by:<12}{count:>8}{:>8.3}{:>8.3}{:>8.3}",
        average(reciprocal_rank),
        average(recall),
        average(gain)
    );
}
