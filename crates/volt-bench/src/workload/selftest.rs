//! Rows that test the instrument: a contender that hangs, one that crashes, one whose result is
//! wrong, and a "Volt" that is as fast as its peer, unless it is slowed on purpose.
#![forbid(unsafe_code)]

use std::hint::black_box;

use crate::bench::Bench;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("selftest/spin", "The same loop twice")
            .hidden()
            .countable()
            .volt("volt", spin)
            .peer("twin", spin),
        Row::new("selftest/faults", "Contenders that fail")
            .hidden()
            .volt("volt", spin)
            .peer("twin", spin)
            .peer("crashing", |_| std::process::abort())
            .peer("wrong", |b| b.iter(|n| assert_eq!(add_up(n), 0, "the sum is wrong")))
            .peer("silent", |_| {}),
        Row::new("selftest/hang", "A contender that hangs")
            .hidden()
            .volt("volt", spin)
            .peer("twin", spin)
            .peer("hanging", |_| {
                loop {
                    std::thread::park();
                }
            }),
    ]
}

fn spin(b: &mut Bench) {
    b.iter(|n| assert!(add_up(n) >= n, "each step adds at least one"));
}

fn add_up(n: u64) -> u64 {
    (0..n).fold(0, |sum: u64, i| sum.wrapping_add(black_box(i | 1)))
}
