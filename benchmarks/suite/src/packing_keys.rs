//! Lines of a request that state the keys of a packing.

use std::collections::BTreeMap;
use std::error::Error;
use std::str::FromStr;

/// A key: Galois element, level, primes to a digit, seeded, special primes.
pub type KeyLine = (u64, usize, usize, bool, Vec<usize>);

/// Keys for the automorphisms of a packing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackingKeys {
    /// All keys.
    pub keys: Vec<KeyLine>,
    /// Automorphisms that are applied one after another for a Galois element.
    pub ways: BTreeMap<u64, Vec<u64>>,
}

impl PackingKeys {
    /// Adds the words of a line `key GALOIS LEVEL ALPHA SEEDED SPECIAL...` or `way GALOIS HOP...`.
    ///
    /// # Errors
    ///
    /// The line is neither.
    pub fn read(&mut self, words: &[&str]) -> Result<(), Box<dyn Error>> {
        match words {
            ["key", galois, level, alpha, seeded, special @ ..] => self.keys.push((
                galois.parse()?,
                level.parse()?,
                alpha.parse()?,
                seeded.parse()?,
                parsed(special)?,
            )),
            ["way", galois, hops @ ..] => {
                self.ways.insert(galois.parse()?, parsed(hops)?);
            }
            _ => return Err(format!("not a line of a request: {}", words.join(" ")).into()),
        }
        Ok(())
    }
}

/// The values of words.
///
/// # Errors
///
/// A word is not a value of the type.
pub fn parsed<T: FromStr>(words: &[&str]) -> Result<Vec<T>, T::Err> {
    words.iter().map(|word| word.parse()).collect()
}
