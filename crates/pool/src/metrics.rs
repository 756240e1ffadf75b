/// What a pool has done since it was made, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// Most entries in memory.
    pub capacity: usize,
    /// Entries in memory.
    pub fill: usize,
    /// Entries made or read from the file.
    pub made: u64,
    /// Encryptions of zero handed out.
    pub taken: u64,
    /// Those that were there when they were wanted.
    pub hits: u64,
    /// Why the background threads ended, if they did.
    pub failure: Option<String>,
}

impl Metrics {
    /// Those that were waited for or made directly.
    pub fn misses(&self) -> u64 {
        self.taken - self.hits
    }

    /// Hits in all that was taken; 1 before the first.
    pub fn hit_rate(&self) -> f64 {
        if self.taken == 0 { 1.0 } else { self.hits as f64 / self.taken as f64 }
    }
}
