use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicU32, explore, thread};

use super::{CLAIMED, Park, ROOT};

/// Also finding K4: no reason is erased that was not reported.
#[test]
fn unpark_against_sleep() {
    explore(|| {
        let shared = Arc::new((Park::new(), AtomicU32::new(0)));
        let wakers = [CLAIMED, ROOT].map(|reason| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.fetch_add(reason, Relaxed);
                shared.0.unpark(reason);
            })
        });
        let mut reasons = 0;
        while reasons != CLAIMED | ROOT {
            let new = shared.0.sleep(None);
            assert_eq!(reasons & new, 0, "reported twice");
            reasons |= new;
            assert_eq!(shared.1.load(Relaxed) & reasons, reasons, "reported before it happened");
        }
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}
