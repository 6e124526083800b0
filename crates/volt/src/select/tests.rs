use super::{from_first, from_random};
use crate::choice::Seeded;

#[test]
fn each_enabled_branch_is_the_first_equally_often() {
    let enabled = 1 << 63 | 1 << 40 | 0b110;
    let mut times = [0; 64];
    let _seeded = Seeded::new(1);
    for _ in 0..4000 {
        let turn = from_random(enabled);
        let first = turn.trailing_zeros();
        assert_eq!(turn, enabled >> first << first, "all from there on");
        times[first as usize] += 1;
    }
    for branch in [1, 2, 40, 63] {
        let times: u32 = times[branch];
        // About seven times the standard deviation from the mean.
        assert!((800..1200).contains(&times), "{times} times {branch}");
    }
}

#[test]
fn without_a_choice_all_are_polled_in_one_turn() {
    for enabled in [0, 1, 1 << 63] {
        assert_eq!(from_random(enabled), enabled);
    }
    assert_eq!(from_first(u64::MAX), u64::MAX);
}
