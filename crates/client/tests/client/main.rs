//! Every arithmetic gives the words of `keywright-ring`, and the bytes of `vectors/client.txt`. What the full library
//! reads and writes is compared in `keywright-thin-server`.
#![expect(clippy::unwrap_used, reason = "test code")]

mod arithmetic;
mod fixture;
mod vectors;
