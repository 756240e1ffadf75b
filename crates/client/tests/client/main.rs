//! Every arithmetic gives the words of `keywright-ring` and the bytes of `vectors/client.txt`. `keywright-thin-server`
//! compares with the full library.
#![expect(clippy::unwrap_used, reason = "test code")]

mod arithmetic;
mod fixture;
mod line;
mod vectors;
