/// An assumption on how the values and errors of a transform's inputs depend on each other from slot to slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Arbitrary dependence: estimates grow by the largest sum of absolute values in a row.
    Arbitrary,
    /// Independence, or a matrix that is a multiple of a unitary one. Deviations are root mean squares over all slots,
    /// and grow by the largest Euclidean norm of a row. Magnitudes of inputs are read as root mean squares too.
    RootMeanSquare,
}

/// The largest norms of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowNorms {
    pub(crate) sum: f64,
    euclidean: f64,
}

impl RowNorms {
    /// The factor by which they multiply deviations.
    pub(crate) fn growth(&self, spread: Spread) -> f64 {
        match spread {
            Spread::Arbitrary => self.sum,
            Spread::RootMeanSquare => self.euclidean,
        }
    }
}

/// For each row of a matrix, the sums of absolute values and of their squares. Repeated rows are stored once.
pub(crate) struct RowSums {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl RowSums {
    /// The norms without diagonals.
    pub(crate) fn new() -> Self {
        Self { sums: vec![0.0], squares: vec![0.0] }
    }

    /// Adds a diagonal, given by the squared absolute values over a power of two of slots, its period.
    pub(crate) fn add_diagonal(&mut self, squares: &[f64]) {
        self.repeat(squares.len());
        let period = squares.len();
        for (sums, total) in self.sums.chunks_exact_mut(period).zip(self.squares.chunks_exact_mut(period)) {
            sums.iter_mut().zip(squares).for_each(|(sum, square)| *sum += square.sqrt());
            total.iter_mut().zip(squares).for_each(|(sum, square)| *sum += square);
        }
    }

    /// Adds other diagonals.
    pub(crate) fn add(&mut self, other: &Self) {
        let period = other.sums.len();
        self.repeat(period);
        for (mine, other) in [(&mut self.sums, &other.sums), (&mut self.squares, &other.squares)] {
            for part in mine.chunks_exact_mut(period) {
                part.iter_mut().zip(other).for_each(|(sum, value)| *sum += value);
            }
        }
    }

    /// The largest norm of all rows.
    pub(crate) fn largest(&self) -> RowNorms {
        let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        RowNorms { sum: largest(&self.sums), euclidean: largest(&self.squares).sqrt() }
    }

    /// Extends the storage to at least this many rows.
    fn repeat(&mut self, rows: usize) {
        let times = rows / self.sums.len().min(rows);
        if times > 1 {
            self.sums = self.sums.repeat(times);
            self.squares = self.squares.repeat(times);
        }
    }
}

/// `E |e|^2` in a slot of a diagonal of that period, encoded at a scale: each of `2p` coefficients has an error up to
/// 1/2.
pub fn diagonal_variance(period: usize, scale: f64) -> f64 {
    period as f64 / 6.0 / (scale * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_diagonals_of_several_periods() {
        let diagonals = [vec![9.0], vec![1.0, 4.0], vec![0.0, 1.0, 4.0, 16.0], vec![25.0, 0.0]];
        let rows = |k: usize| diagonals.iter().map(move |squares: &Vec<f64>| squares[k % squares.len()]);
        let expected_sum = (0..4).map(|k| rows(k).map(f64::sqrt).sum()).fold(0.0, f64::max);
        let expected_square = (0..4).map(|k| rows(k).sum()).fold(0.0, f64::max);
        let mut halves = [RowSums::new(), RowSums::new()];
        diagonals.iter().enumerate().for_each(|(i, squares)| halves[i % 2].add_diagonal(squares));
        for order in [[0, 1], [1, 0]] {
            let mut all = RowSums::new();
            order.iter().for_each(|&half| all.add(&halves[half]));
            let norms = all.largest();
            assert_eq!(
                (norms.growth(Spread::Arbitrary), norms.euclidean.powi(2)),
                (expected_sum, expected_square)
            );
        }
    }
}
