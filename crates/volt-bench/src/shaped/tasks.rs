//! Workloads on parts that only Tokio-shaped runtimes have.

use super::rt::task::JoinSet;
use super::runtime::Multi;
use crate::bench::Bench;
use crate::kind::Runtime;

pub(crate) fn joinset_100(b: &mut Bench) {
    let runtime = Multi::start();
    b.iter_ops(100, |n| {
        runtime.run_task(async move {
            for _ in 0..n {
                let mut set = JoinSet::new();
                (0..100_u64).for_each(|i| drop(set.spawn(async move { i })));
                let mut sum = 0;
                while let Some(result) = set.join_next().await {
                    sum += result.expect("the task ends well");
                }
                assert_eq!(sum, 4950);
            }
        });
    });
}
