/// The statistics and the content of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// Most entries in memory.
    pub capacity: usize,
    /// Entries in memory.
    pub fill: usize,
    /// Entries made or read from the file.
    pub made: u64,
    /// Encryptions of zero returned.
    pub taken: u64,
    /// Those that were ready when they were requested.
    pub hits: u64,
    /// The reason why the background threads ended, if they did.
    pub failure: Option<String>,
}

impl Metrics {
    /// Those that were waited for, or made by the caller.
    pub fn misses(&self) -> u64 {
        self.taken - self.hits
    }

    /// The share of hits among all returned; 1 before the first.
    pub fn hit_rate(&self) -> f64 {
        if self.taken == 0 { 1.0 } else { self.hits as f64 / self.taken as f64 }
    }
}
