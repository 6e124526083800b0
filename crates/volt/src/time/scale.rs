//! Times as numbers: nanoseconds since a moment before the process started, the *origin*.
//!
//! Purpose: the timers compare and add deadlines as one word each; u64 reaches for five centuries.
//!
//! The machine's clock is read without `Instant`, as an `Instant::now` and the way from it to a number are 37 ns where the
//! reading alone is 31 (AMD EPYC), and registering a timer and cancelling it takes some 60 in all. Both have to
//! agree to the nanosecond, since deadlines come as either, so the reading of the origin is needed; and an
//! `Instant` does not say its reading. It hashes it, though ([`Fields`]). That this is so is checked, once, by two
//! readings around an `Instant`; if it is not, the time is read the longer way.
#![forbid(unsafe_code)]

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use volt_sync::internal::primitive;

struct Scale {
    origin: Instant,
    /// What [`primitive::now_ns`] would have read then (it may wrap), if that is known.
    reading: Option<u64>,
}

/// Long before the process started, where the platform can say so, so that instants from before the first timer
/// have a place on the scale.
#[inline]
fn scale() -> &'static Scale {
    static SCALE: OnceLock<Scale> = OnceLock::new();
    SCALE.get_or_init(|| {
        const DAY: u64 = 86_400;
        let before = primitive::now_ns();
        let now = primitive::now();
        let after = primitive::now_ns();
        let earlier = |seconds| now.checked_sub(Duration::from_secs(seconds));
        let origin = [365 * DAY, DAY, 3600].into_iter().find_map(earlier).unwrap_or(now);
        let reading = Fields::of(now).as_ns().filter(|&at| before <= Some(at) && Some(at) <= after);
        let age = nanos(now.saturating_duration_since(origin));
        Scale { origin, reading: reading.map(|at| at.wrapping_sub(age)) }
    })
}

/// The fields of an [`Instant`] that is the seconds and nanoseconds of a clock.
#[derive(Debug, Default)]
struct Fields {
    seconds: Option<i64>,
    nanos: Option<u32>,
}

impl Fields {
    fn of(instant: Instant) -> Self {
        let mut fields = Self::default();
        instant.hash(&mut fields);
        fields
    }

    fn as_ns(&self) -> Option<u64> {
        let seconds = u64::try_from(self.seconds?).ok()?.checked_mul(1_000_000_000)?;
        seconds.checked_add(self.nanos?.into())
    }
}

impl Hasher for Fields {
    fn write(&mut self, _: &[u8]) {}

    fn write_i64(&mut self, seconds: i64) {
        self.seconds = Some(seconds);
    }

    fn write_u32(&mut self, nanos: u32) {
        self.nanos = Some(nanos);
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// Saturating nanoseconds.
#[inline]
pub(super) fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(duration.subsec_nanos()))
}

/// The place of `instant` on the scale; instants outside of it are moved to its ends.
#[inline]
pub(super) fn to_ns(instant: Instant) -> u64 {
    nanos(instant.saturating_duration_since(scale().origin))
}

/// The opposite of [`to_ns`].
pub(super) fn to_instant(ns: u64) -> Instant {
    let far_future = || primitive::now() + super::FAR_FUTURE;
    scale().origin.checked_add(Duration::from_nanos(ns)).unwrap_or_else(far_future)
}

/// The machine's clock.
#[inline]
pub(crate) fn machine_ns() -> u64 {
    match (scale().reading, primitive::now_ns()) {
        (Some(of_origin), Some(now)) => now.wrapping_sub(of_origin),
        _ => to_ns(primitive::now()),
    }
}

/// What the system's clock reads at the time `ns` of the machine's, if that is known.
#[cfg(all(target_os = "linux", not(volt_loom)))]
pub(crate) fn reading_at(ns: u64) -> Option<u64> {
    Some(ns.wrapping_add(scale().reading?))
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_read_the_clock_agree() {
        for _ in 0..10_000 {
            let before = to_ns(primitive::now());
            let now = machine_ns();
            let after = to_ns(primitive::now());
            assert!(before <= now && now <= after, "{before} {now} {after}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_way_back_to_a_reading_is_the_systems() {
        let before = primitive::now_ns();
        let now = reading_at(machine_ns());
        let after = primitive::now_ns();
        assert!(now.is_some() && before <= now && now <= after, "{before:?} {now:?} {after:?}");
    }

    /// If this fails, `Instant` has changed: all is well but for some nanoseconds at each reading.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_clock_is_read_the_shorter_way() {
        assert!(scale().reading.is_some());
    }

    #[test]
    fn what_is_no_reading_is_refused() {
        let nothing = Fields::default();
        let negative = Fields { seconds: Some(-1), nanos: Some(0) };
        let too_large = Fields { seconds: Some(i64::MAX), nanos: Some(0) };
        let half = Fields { seconds: Some(1), nanos: None };
        for fields in [nothing, negative, too_large, half] {
            assert_eq!(fields.as_ns(), None, "{fields:?}");
        }
        let whole = Fields { seconds: Some(2), nanos: Some(3) };
        assert_eq!(whole.as_ns(), Some(2_000_000_003));
    }
}
