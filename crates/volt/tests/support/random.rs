//! How tests with random cases are run.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The same cases each time, so that a change is blamed for nothing that was there before. `PROPTEST_RNG_SEED` chooses others, and
/// `PROPTEST_CASES` how many.
pub(crate) fn config() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let rng_seed = match config.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        chosen @ RngSeed::Fixed(_) => chosen,
    };
    // Instrumented, each one takes ten times as long.
    let cases = if cfg!(volt_tsan) { config.cases / 8 } else { config.cases };
    ProptestConfig { cases, rng_seed, ..config }
}
