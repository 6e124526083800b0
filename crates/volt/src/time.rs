//! Timers: waiting for a time, for a future but not too long, and at regular times.
//!
//! | Call | |
//! |---|---|
//! | [`sleep`], [`sleep_until`] | waits |
//! | [`timeout`], [`timeout_at`] | bounds the time of a future |
//! | [`interval`], [`interval_at`] | ticks |
//! | [`pause`], [`advance`], [`resume`] | the clock in tests |
//!
//! Timers have a resolution of nanoseconds: they never fire early, and the thread that waits for
//! the next one waits for exactly that. If timers would wake it more than eight times in a
//! millisecond, it takes several at once, of which the first is up to 125 us late.
//!
//! ```
//! use volt::time::{Duration, Instant, interval, sleep, timeout};
//!
//! volt::run(async {
//!     let (short, long) = (Duration::from_millis(2), Duration::from_secs(60));
//!     assert!(timeout(short, sleep(long)).await.is_err());
//!     assert_eq!(timeout(long, async { 1 }).await, Ok(1));
//!
//!     let start = Instant::now();
//!     let mut ticks = interval(short);
//!     for _ in 0..3 {
//!         ticks.tick().await;
//!     }
//!     assert!(start.elapsed() >= 2 * short, "the first tick is at once");
//! });
//! ```

pub mod error;

mod clock;
mod entry;
mod instant;
mod interval;
mod lock;
mod scale;
mod scope;
mod sleep;
mod timeout;
mod timers;
mod wheel;

pub use std::time::Duration;

pub use clock::{advance, pause, resume};
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub(crate) use sleep::SendTimer;
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Timeout, timeout, timeout_at};

pub(crate) use clock::Clock;
pub(crate) use scale::machine_ns;
#[cfg(all(target_os = "linux", not(volt_loom)))]
pub(crate) use scale::reading_at;
#[cfg(all(test, not(volt_loom)))]
pub(crate) use scope::enter as with_timers;
pub(crate) use scope::{Scope, enter_scope, restore_scope};
pub(crate) use timers::Timers;

/// "Never", for a deadline that the platform cannot represent: 30 years, as in Tokio.
const FAR_FUTURE: Duration = Duration::from_secs(86_400 * 365 * 30);
