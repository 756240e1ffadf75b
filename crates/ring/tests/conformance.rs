//! Runs every back end that this CPU supports through the conformance suite.

keywright_ring_testing::conformance_suite!(portable);
keywright_ring_testing::conformance_suite!(avx2);
keywright_ring_testing::conformance_suite!(avx512);
keywright_ring_testing::conformance_suite!(neon);

#[test]
fn the_suite_knows_every_backend() {
    let names: Vec<_> = keywright_ring::backend::available().iter().map(|b| b.kind().name()).collect();
    assert_eq!(names[0], "portable");
    assert!(names.iter().all(|name| ["portable", "avx2", "avx512", "neon"].contains(name)), "{names:?}");
}
