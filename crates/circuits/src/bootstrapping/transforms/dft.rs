//! The special Fourier matrix as a product of sparse-diagonal factors.
//!
//! For `n = 2^log_slots` slots let `w_k = c_k + i c_(k+n)` be the complex coefficients of a plaintext
//! ([`keywright_ckks::encoder`]), `z` its slots and `F` the matrix of `z = F w`. With `B` the bit reversal of
//! `log_slots` bits,
//!
//! ```text
//! F = L_(n/2) ... L_4 L_2 L_1 B,
//! ```
//!
//! where layer `L_l` maps the entries `a`, `b` at positions `j` and `j + l` modulo `2 l` to `a + w_j b`,
//! `a - w_j b`, with `w_j = exp(2 pi i 5^j / 8 l)`. `L_l` has the diagonals `0`, `l` and `-l`, and `L_l / sqrt(2)`
//! is unitary. The product of the layers `2^a .. 2^b` has the diagonals `k 2^a`, `|k| < 2^(b-a)`: `2^(b-a+1) - 1`
//! of them, and `2^(b-a)` for the last group, `b = log_slots`, where `k` and `k - 2^(b-a)` coincide. All its
//! entries have period `2^b`, so that its diagonals are plaintexts of `2^b` slots.
//!
//! *Positive diagonals.* With `R_c` the rotation by `c`, `D R_r` a diagonal and `S_i = c_1 + .. + c_i`, the factors
//! `R_(S_i) M_i R_(-S_(i-1))` have their diagonals at `r + c_i`. Their product is that of the `M_i` if `S_m = 0` modulo
//! `n`. Here `c_i = T_i - T_(i-1)`, in the order of distances, with `T_i = 2^b` for the layers `2^a .. 2^b`. So
//! `r + c_i` is nonnegative, and the giant steps of a factor are a chain `0, g, 2 g, ..`. The last group may be shifted
//! by any multiple of its distances.
//!
//! The homomorphic transforms omit `B`: [`Direction::Forward`] is `F B`, which takes the complex coefficients in
//! bit-reversed order to the slots, and [`Direction::Inverse`] is `B F^-1`. The steps between them work slot by slot,
//! so the order does not matter. (Cheon, Han and Hhan, *Faster homomorphic discrete Fourier transforms and improved FHE
//! bootstrapping*, IEEE Access 2019; Chen, Chillotti and Song, Eurocrypt 2019.)

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use keywright_ckks::Complex64;
use keywright_ckks::encoder::twiddles;

use crate::CircuitError;

/// The direction of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `F B`: from complex coefficients in bit-reversed order to slots. From slots that hold `z` it makes the plaintext
    /// whose complex coefficients are `z`, bit-reversed.
    Forward,
    /// `B F^-1`: from slots to complex coefficients in bit-reversed order.
    Inverse,
}

/// A factorisation of the special Fourier matrix: how many radix-2 layers each factor merges. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dft {
    log_slots: u32,
    layers: Vec<u32>,
}

/// Most factors for which [`Dft::neighbours`] varies the layers: 51 factorisations at most.
const MOST_VARIED: usize = 5;
/// `log2` of the most slots: those of the largest ring.
pub const MAX_LOG_SLOTS: u32 = keywright_ring::MAX_LOG_N - 1;

/// Most factors: more levels than any parameters have.
pub const MAX_FACTORS: usize = 256;

fn require_log_slots(log_slots: u32) -> Result<(), CircuitError> {
    let max = MAX_LOG_SLOTS;
    if log_slots > max { Err(CircuitError::LogSlots { log_slots, max }) } else { Ok(()) }
}

impl Dft {
    /// A factorisation; `layers` counts the layers of each factor, the shortest distance first. A factor without layers
    /// is the identity.
    ///
    /// # Errors
    /// [`CircuitError::LogSlots`] above [`MAX_LOG_SLOTS`]; [`CircuitError::Empty`] without factors;
    /// [`CircuitError::DftLayers`] unless there are `log_slots` layers in all.
    pub fn new(log_slots: u32, layers: &[u32]) -> Result<Self, CircuitError> {
        require_log_slots(log_slots)?;
        if layers.is_empty() {
            return Err(CircuitError::Empty("the list of factors of the Fourier transform"));
        }
        let found = layers.iter().map(|&count| u64::from(count)).sum();
        if found != u64::from(log_slots) {
            return Err(CircuitError::DftLayers { found, log_slots });
        }
        Ok(Self { log_slots, layers: layers.to_vec() })
    }

    /// A factorisation into `factors` factors with the fewest diagonals. Layer by layer, the next one joins the factor
    /// where it adds the fewest.
    ///
    /// # Errors
    /// [`CircuitError::LogSlots`] above [`MAX_LOG_SLOTS`]; [`CircuitError::Empty`] for no factors;
    /// [`CircuitError::Count`] above [`MAX_FACTORS`].
    pub fn balanced(log_slots: u32, factors: usize) -> Result<Self, CircuitError> {
        require_log_slots(log_slots)?;
        if factors > MAX_FACTORS {
            let what = "factors of the Fourier transform";
            return Err(CircuitError::Count { what, count: factors, min: 1, max: MAX_FACTORS });
        }
        let mut layers = vec![0; factors];
        for _ in 0..log_slots {
            // The last factor has half as many diagonals as another with as many layers, but longer ones.
            let next = (0..factors).min_by_key(|&k| layers[k] + u32::from(k + 1 < factors));
            if let Some(next) = next {
                layers[next] += 1;
            }
        }
        Self::new(log_slots, &layers)
    }

    /// This factorisation, and all whose factors have at most one layer more or less, but at least one if they have any
    /// here. With more than [`MOST_VARIED`] factors, only this one.
    pub(crate) fn neighbours(&self) -> Vec<Self> {
        let mut lists = vec![Vec::new()];
        for &layers in self.layers.iter().filter(|_| self.depth() <= MOST_VARIED) {
            let counts = layers.saturating_sub(1).max(layers.min(1))..=layers + 1;
            lists = lists
                .iter()
                .flat_map(|list: &Vec<u32>| counts.clone().map(|count| [&list[..], &[count]].concat()))
                .collect();
        }
        let others = lists.into_iter().filter(|list| list != &self.layers);
        let others = others.filter(|list| list.iter().sum::<u32>() == self.log_slots);
        let of = |layers| Self { log_slots: self.log_slots, layers };
        // The given one comes first, so it wins among equals.
        std::iter::once(self.layers.clone()).chain(others.filter(|list| !list.is_empty())).map(of).collect()
    }

    /// `log2` of the number of slots.
    pub fn log_slots(&self) -> u32 {
        self.log_slots
    }

    /// Layers of each factor, the shortest distance first.
    pub fn layers(&self) -> &[u32] {
        &self.layers
    }

    /// Number of factors: the levels that a homomorphic transform consumes.
    pub fn depth(&self) -> usize {
        self.layers.len()
    }

    /// Factors in the order of application.
    pub fn order(&self, direction: Direction) -> Vec<usize> {
        match direction {
            Direction::Forward => (0..self.depth()).collect(),
            Direction::Inverse => (0..self.depth()).rev().collect(),
        }
    }

    /// Layers `a..b` of a factor: distances `2^a .. 2^(b-1)`.
    fn range(&self, factor: usize) -> Range<u32> {
        let start = self.layers[..factor].iter().sum();
        start..start + self.layers[factor]
    }

    /// `T_i`: the total shift of factors `0..=factor`.
    fn total_shift(&self, factor: usize) -> i64 {
        let merged = (0..=factor).rev().map(|i| self.range(i)).find(|range| !range.is_empty());
        merged.map_or(0, |range| 1 << range.end)
    }

    /// `c_i`.
    fn shift(&self, factor: usize) -> i64 {
        self.total_shift(factor) - factor.checked_sub(1).map_or(0, |before| self.total_shift(before))
    }

    /// Indices of the diagonals of a factor, modulo the number of slots; the same in both directions.
    ///
    /// # Panics
    /// If there is no such factor.
    pub fn indices(&self, factor: usize) -> BTreeSet<usize> {
        let Range { start, end } = self.range(factor);
        let (slots, reach) = (1i64 << self.log_slots, 1i64 << (end - start));
        let shift = self.shift(factor);
        (1 - reach..reach).map(|k| ((k << start) + shift).rem_euclid(slots) as usize).collect()
    }

    /// A period of all diagonals of a factor.
    ///
    /// # Panics
    /// If there is no such factor.
    pub fn period(&self, factor: usize) -> usize {
        1 << self.range(factor).end
    }

    /// Diagonals of `constant` times a factor. In both directions the factor is a multiple of a unitary matrix:
    /// `constant 2^(layers/2)` forwards, `constant 2^(-layers/2)` backwards.
    ///
    /// # Panics
    /// If there is no such factor.
    pub fn diagonals(
        &self,
        direction: Direction,
        factor: usize,
        constant: f64,
    ) -> BTreeMap<usize, Vec<Complex64>> {
        let range = self.range(factor);
        let slots = 1i64 << self.log_slots;
        let period = self.period(factor);
        let identity = BTreeMap::from([(0, vec![Complex64::from(constant); period])]);
        let layer = |log_distance| layer(direction, log_distance, period);
        let product = match direction {
            Direction::Forward => range.fold(identity, |m, l| multiply(&layer(l), &m)),
            Direction::Inverse => range.rev().fold(identity, |m, l| multiply(&layer(l), &m)),
        };
        // S_i: the shifts of this factor and of those applied before it.
        let shifted = match direction {
            Direction::Forward => self.total_shift(factor),
            Direction::Inverse => -factor.checked_sub(1).map_or(0, |before| self.total_shift(before)),
        };
        let mut out: BTreeMap<usize, Vec<Complex64>> = BTreeMap::new();
        for (offset, entries) in product {
            let index = (offset + self.shift(factor)).rem_euclid(slots) as usize;
            let sum = out.entry(index).or_insert_with(|| vec![Complex64::ZERO; slots as usize]);
            let first = shifted.rem_euclid(period as i64) as usize;
            for (k, value) in sum.iter_mut().enumerate() {
                *value += entries[(k + first) % period];
            }
        }
        out
    }

    /// The most numbers that [`Self::diagonals`] holds at a time for a factor.
    pub(crate) fn working_numbers(&self, factor: usize) -> usize {
        let product = |layers: usize| (2 << layers) - 1;
        let layers = self.range(factor).len();
        // A layer has three diagonals. The last product is held beside what it is made from.
        let last = layers.checked_sub(1).map_or(0, |before| product(before) + 3);
        let entries = self.indices(factor).len() << self.log_slots;
        entries.max((product(layers) + last) * self.period(factor))
    }
}

/// Diagonals with signed offsets, of entries with a common period.
type Periodic = BTreeMap<i64, Vec<Complex64>>;

/// One layer or its inverse.
fn layer(direction: Direction, log_distance: u32, period: usize) -> Periodic {
    let distance = 1usize << log_distance;
    let roots = twiddles(log_distance);
    let entries = |lower: &dyn Fn(Complex64) -> Complex64, upper: &dyn Fn(Complex64) -> Complex64| {
        let entry = |k: usize| {
            let root = roots[k % distance];
            if k & distance == 0 { lower(root) } else { upper(root) }
        };
        (0..period).map(entry).collect::<Vec<_>>()
    };
    let (zero, one, half) = (Complex64::ZERO, Complex64::ONE, Complex64::from(0.5));
    let (main, right, left) = match direction {
        Direction::Forward => {
            (entries(&|_| one, &|w| -w), entries(&|w| w, &|_| zero), entries(&|_| zero, &|_| one))
        }
        Direction::Inverse => (
            entries(&|_| half, &|w| -half * w.conj()),
            entries(&|_| half, &|_| zero),
            entries(&|_| zero, &|w| half * w.conj()),
        ),
    };
    let distance = distance as i64;
    BTreeMap::from([(0, main), (distance, right), (-distance, left)])
}

/// The product of two matrices: `(A B)_(r+s)[k] = sum A_r[k] B_s[k + r]`.
fn multiply(a: &Periodic, b: &Periodic) -> Periodic {
    let mut out = Periodic::new();
    for (r, left) in a {
        for (s, right) in b {
            let period = left.len();
            let sum = out.entry(r + s).or_insert_with(|| vec![Complex64::ZERO; period]);
            let shift = r.rem_euclid(period as i64) as usize;
            for (k, value) in sum.iter_mut().enumerate() {
                *value += left[k] * right[(k + shift) % period];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use keywright_ckks::encoder::Embedding;

    /// Embedding and product in `f64`: 30 passes and products within 4 units of the norm each.
    const FLOAT: f64 = 128.0 / (1u64 << 53) as f64;

    fn apply(diagonals: &BTreeMap<usize, Vec<Complex64>>, v: &[Complex64]) -> Vec<Complex64> {
        let n = v.len();
        (0..n).map(|k| diagonals.iter().map(|(r, d)| d[k] * v[(k + r) % n]).sum()).collect()
    }

    fn bit_reversed(log_slots: u32, v: &[Complex64]) -> Vec<Complex64> {
        let reversed =
            |k: usize| if log_slots == 0 { 0 } else { k.reverse_bits() >> (usize::BITS - log_slots) };
        (0..v.len()).map(|k| v[reversed(k)]).collect()
    }

    fn close(a: &[Complex64], b: &[Complex64], what: &str) {
        let norm = b.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        let error = a.iter().zip(b).map(|(x, y)| (x - y).norm()).fold(0.0, f64::max);
        assert!(error <= FLOAT * norm, "{what}: {error:e} for norm {norm}");
    }

    fn numbers<K>(diagonals: &BTreeMap<K, Vec<Complex64>>) -> usize {
        diagonals.values().map(Vec::len).sum()
    }

    #[test]
    fn the_numbers_held_while_a_factor_is_made_are_counted() {
        for (log_slots, factors) in [(1, 1), (6, 1), (7, 2), (10, 3), (10, 4)] {
            let dft = Dft::balanced(log_slots, factors).unwrap();
            for factor in 0..dft.depth() {
                let (range, period) = (dft.range(factor), dft.period(factor));
                let mut product = Periodic::from([(0, vec![Complex64::ONE; period])]);
                let mut most = 0;
                for log_distance in range {
                    let layer = layer(Direction::Forward, log_distance, period);
                    let next = multiply(&layer, &product);
                    most = numbers(&next) + numbers(&product) + numbers(&layer);
                    product = next;
                }
                let entries = numbers(&dft.diagonals(Direction::Forward, factor, 1.0));
                assert_eq!(
                    dft.working_numbers(factor),
                    most.max(entries),
                    "{log_slots}, {factors}, {factor}"
                );
            }
        }
    }

    #[test]
    fn factors_multiply_to_the_embedding_for_every_packing() {
        let embedding = Embedding::new(11);
        for log_slots in 0..=10 {
            let n = 1usize << log_slots;
            let w: Vec<Complex64> =
                (0..n).map(|k| Complex64::from_polar(1.0, 1.0 + 17.0 * (k * k) as f64)).collect();
            let mut slots = w.clone();
            embedding.to_slots(log_slots, &mut slots);
            for factors in 1..=4 {
                let what = format!("2^{log_slots} slots, {factors} factors");
                let dft = Dft::balanced(log_slots, factors).unwrap();
                let run = |direction, v: Vec<Complex64>| {
                    dft.order(direction).into_iter().fold(v, |v, factor| {
                        let diagonals = dft.diagonals(direction, factor, 2.0);
                        assert_eq!(
                            diagonals.keys().copied().collect::<BTreeSet<_>>(),
                            dft.indices(factor),
                            "{what}"
                        );
                        apply(&diagonals, &v)
                    })
                };
                let scaled = |v: &[Complex64]| -> Vec<Complex64> {
                    v.iter().map(|x| x * 2f64.powi(factors as i32)).collect()
                };
                let reversed = bit_reversed(log_slots, &w);
                close(&run(Direction::Forward, reversed.clone()), &scaled(&slots), &what);
                close(&run(Direction::Inverse, slots.clone()), &scaled(&reversed), &what);
            }
        }
    }

    #[test]
    fn rows_of_a_factor_have_the_norm_of_a_unitary_matrix() {
        let dft = Dft::new(9, &[3, 2, 4]).unwrap();
        for factor in 0..3 {
            for (direction, sign) in [(Direction::Forward, 0.5), (Direction::Inverse, -0.5)] {
                let expected = 3.0 * 2f64.powf(sign * f64::from(dft.layers()[factor]));
                let diagonals = dft.diagonals(direction, factor, 3.0);
                for k in 0..512 {
                    let norm = diagonals.values().map(|d| d[k].norm_sqr()).sum::<f64>().sqrt();
                    assert!((norm / expected - 1.0).abs() < FLOAT, "{direction:?} {factor} {k}");
                }
            }
        }
    }

    #[test]
    fn diagonals_form_a_chain() {
        for log_slots in 1..=10 {
            for factors in 1..=4 {
                let dft = Dft::balanced(log_slots, factors).unwrap();
                for factor in 0..factors {
                    let (indices, range) = (dft.indices(factor), dft.range(factor));
                    // All of the multiples, or a run of them that does not wrap.
                    let multiples = 1usize << (log_slots - range.start);
                    let run: Vec<usize> = indices.iter().map(|r| r >> range.start).collect();
                    assert!(indices.iter().all(|r| r % (1 << range.start) == 0));
                    assert!(run.windows(2).all(|w| w[1] == w[0] + 1), "{dft:?} {factor}: {run:?}");
                    assert!(run.len() == multiples || run[run.len() - 1] < 2 << range.len());
                }
            }
        }
    }

    #[test]
    fn balance_favours_the_factor_whose_diagonals_coincide() {
        assert_eq!(Dft::balanced(15, 3).unwrap().layers(), [5, 5, 5]);
        assert_eq!(Dft::balanced(14, 3).unwrap().layers(), [5, 4, 5]);
        assert_eq!(Dft::balanced(15, 4).unwrap().layers(), [4, 4, 3, 4]);
        assert_eq!(Dft::balanced(0, 1).unwrap().layers(), [0]);
        assert_eq!(Dft::balanced(2, 4).unwrap().layers(), [1, 0, 0, 1]);
        assert!(matches!(Dft::balanced(4, 0), Err(CircuitError::Empty(_))));
        let (factors, log_slots) = (usize::MAX, u32::MAX);
        assert!(matches!(Dft::balanced(4, factors), Err(CircuitError::Count { count: usize::MAX, .. })));
        assert!(matches!(Dft::balanced(log_slots, 4), Err(CircuitError::LogSlots { .. })));
        assert!(matches!(Dft::new(log_slots, &[1]), Err(CircuitError::LogSlots { .. })));
        assert!(matches!(Dft::new(4, &[1, 2]), Err(CircuitError::DftLayers { found: 3, log_slots: 4 })));
    }
}
