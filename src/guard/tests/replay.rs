//! What the fuzzer starts from and what it found, and random bytes, read on a
//! stable toolchain.

use std::path::Path;

use proptest::prelude::*;

use crate::guard::border::read;

#[test]
fn the_corpus_of_the_fuzz_target_gets_its_answers() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/guard");
    let mut count = 0;
    for file in std::fs::read_dir(&corpus).unwrap() {
        read(&std::fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 40, "{count}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(input in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&input);
    }

    /// Pieces of known commands, glued together at random places.
    #[test]
    fn pieces_of_commands_get_an_answer(
        pieces in prop::collection::vec((prop::sample::select(super::corpus::dangerous()), 0_usize..60, 1_usize..40), 1..6),
        place in any::<u8>(),
    ) {
        let mut input = vec![place];
        for (line, from, length) in pieces {
            input.extend(line.bytes().skip(from).take(length));
        }
        read(&input);
    }
}
