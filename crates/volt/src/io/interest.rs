//! What to wait for, and what is ready.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};

const READABLE: u8 = 1;
const WRITABLE: u8 = 1 << 1;
const READ_CLOSED: u8 = 1 << 2;
const WRITE_CLOSED: u8 = 1 << 3;
const PRIORITY: u8 = 1 << 4;
const ERROR: u8 = 1 << 5;
/// Of an interest only: it is the one of a receive.
const RECEIVES: u8 = 1 << 6;
const NAMES: [(u8, &str); 6] = [
    (READABLE, "READABLE"),
    (WRITABLE, "WRITABLE"),
    (READ_CLOSED, "READ_CLOSED"),
    (WRITE_CLOSED, "WRITE_CLOSED"),
    (PRIORITY, "PRIORITY"),
    (ERROR, "ERROR"),
];

/// Methods that ask whether some of some bits are there: name, bits, meaning, example.
macro_rules! predicates {
    ($($name:ident: $bits:expr, $what:literal, $example:literal;)*) => {$(
        #[doc = concat!("True if ", $what, ".")]
        ///
        /// # Examples
        #[doc = concat!("```\n# use volt::io::{Interest, Ready};\nassert!(", $example, ");\n```")]
        #[must_use]
        pub const fn $name(self) -> bool {
            self.0 & ($bits) != 0
        }
    )*};
}

/// The kinds of readiness that a caller waits for.
///
/// # Examples
/// ```
/// use volt::io::Interest;
///
/// let both = Interest::READABLE | Interest::WRITABLE;
/// assert!(both.is_readable() && both.is_writable());
/// assert_eq!(both.remove(Interest::WRITABLE), Some(Interest::READABLE));
/// assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// Data to read, or the end of the stream.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Interest::READABLE.is_readable());
    /// ```
    pub const READABLE: Self = Self(READABLE);
    /// Room to write, or a peer that no longer reads.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Interest::WRITABLE.is_writable());
    /// ```
    pub const WRITABLE: Self = Self(WRITABLE);
    /// Out-of-band data (Linux).
    ///
    /// ```
    /// assert!(volt::io::Interest::PRIORITY.is_priority());
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const PRIORITY: Self = Self(PRIORITY);
    /// An error on the source, which [`READABLE`](Self::READABLE) does not include. Always registered with the operating
    /// system, so it is only a filter.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Interest::ERROR.is_error());
    /// ```
    pub const ERROR: Self = Self(ERROR);

    /// What receives datagrams: a datagram, or the error of one that was sent, of which there may be no other sign. Not a
    /// caller's `READABLE | ERROR`: which queue that asks, only the caller knows.
    pub(crate) const RECEIVE: Self = Self(READABLE | ERROR | RECEIVES);

    predicates! {
        is_readable: READABLE, "the interest includes reading",
            "Interest::READABLE.is_readable()";
        is_writable: WRITABLE, "the interest includes writing",
            "Interest::WRITABLE.is_writable()";
        is_priority: PRIORITY, "the interest includes out-of-band data",
            "!Interest::READABLE.is_priority()";
        is_error: ERROR, "the interest includes errors",
            "Interest::ERROR.is_error()";
    }

    /// Both together.
    ///
    /// # Examples
    /// ```
    /// use volt::io::Interest;
    /// const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);
    /// assert!(BOTH.is_readable() && BOTH.is_writable());
    /// ```
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is left without `other`; `None` if that is nothing.
    ///
    /// # Examples
    /// ```
    /// use volt::io::Interest;
    /// assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
    /// ```
    #[must_use]
    pub const fn remove(self, other: Self) -> Option<Self> {
        let left = self.0 & !other.0;
        if left == 0 { None } else { Some(Self(left)) }
    }

    /// The readiness that satisfies this interest.
    pub(crate) const fn mask(self) -> Ready {
        let mut mask = self.0 & !RECEIVES;
        if self.0 & (READABLE | PRIORITY) != 0 {
            mask |= READ_CLOSED;
        }
        if self.0 & WRITABLE != 0 {
            mask |= WRITE_CLOSED;
        }
        Ready(mask)
    }

    /// What an operation with this interest that would block has proved not to be so. An end only if there is no doubt
    /// which direction was tried.
    pub(crate) fn refuted(self) -> Ready {
        match self {
            Self::READABLE | Self::WRITABLE | Self::RECEIVE => self.mask(),
            _ => Ready(self.0),
        }
    }

    /// What to ask the operating system for. Errors are reported in any case; an interest in
    /// nothing else is registered as one in reading.
    pub(crate) fn to_mio(self) -> mio::Interest {
        let kinds = [
            (self.is_readable() || self.0 == ERROR, mio::Interest::READABLE),
            (self.is_writable(), mio::Interest::WRITABLE),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            (self.is_priority(), mio::Interest::PRIORITY),
        ];
        kinds
            .into_iter()
            .filter_map(|(wanted, kind)| wanted.then_some(kind))
            .reduce(|all, kind| all | kind)
            .expect("an interest has at least one bit")
    }
}

/// The kinds of readiness that a source has.
///
/// A hint: the operation that follows may still find nothing to do.
///
/// # Examples
/// ```
/// use volt::io::Ready;
///
/// let ready = Ready::READABLE | Ready::READ_CLOSED;
/// assert!(ready.is_readable() && ready.is_read_closed() && !ready.is_writable());
/// assert_eq!(ready - Ready::READ_CLOSED, Ready::READABLE);
/// assert!(Ready::EMPTY.is_empty());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready(u8);

impl Ready {
    /// Nothing.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Ready::EMPTY.is_empty());
    /// ```
    pub const EMPTY: Self = Self(0);
    /// Reading will find something.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Ready::READABLE.is_readable());
    /// ```
    pub const READABLE: Self = Self(READABLE);
    /// Writing will find room.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Ready::WRITABLE.is_writable());
    /// ```
    pub const WRITABLE: Self = Self(WRITABLE);
    /// The peer will send no more.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Ready::READ_CLOSED.is_read_closed());
    /// ```
    pub const READ_CLOSED: Self = Self(READ_CLOSED);
    /// The peer will take no more.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Ready::WRITE_CLOSED.is_write_closed());
    /// ```
    pub const WRITE_CLOSED: Self = Self(WRITE_CLOSED);
    /// Out-of-band data (Linux).
    ///
    /// ```
    /// assert!(volt::io::Ready::PRIORITY.is_priority());
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const PRIORITY: Self = Self(PRIORITY);
    /// The source has an error to report.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Ready::ERROR.is_error());
    /// ```
    pub const ERROR: Self = Self(ERROR);
    /// Everything.
    ///
    /// # Examples
    /// ```
    /// use volt::io::Ready;
    /// assert!(Ready::ALL.is_readable() && Ready::ALL.is_writable());
    /// ```
    pub const ALL: Self = Self(READABLE | WRITABLE | READ_CLOSED | WRITE_CLOSED | PRIORITY | ERROR);

    /// Out-of-band data, on every platform.
    pub(crate) const URGENT: Self = Self(PRIORITY);
    /// What ends a wait for reading, or for writing.
    pub(crate) const READ: Self = Self(READABLE | READ_CLOSED);
    /// Or for a datagram, or for what became of one that was sent.
    pub(crate) const RECEIVE: Self = Self(READABLE | READ_CLOSED | ERROR);
    pub(crate) const WRITE: Self = Self(WRITABLE | WRITE_CLOSED);

    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// True if nothing is ready.
    ///
    /// # Examples
    /// ```
    /// assert!(volt::io::Ready::EMPTY.is_empty());
    /// ```
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    predicates! {
        is_readable: READABLE | READ_CLOSED, "reading will find something: data, or the end of the stream",
            "Ready::READ_CLOSED.is_readable()";
        is_writable: WRITABLE | WRITE_CLOSED, "writing will find room, or an error",
            "Ready::WRITABLE.is_writable()";
        is_read_closed: READ_CLOSED, "the peer will send no more",
            "Ready::READ_CLOSED.is_read_closed()";
        is_write_closed: WRITE_CLOSED, "the peer will take no more",
            "!Ready::WRITABLE.is_write_closed()";
        is_priority: PRIORITY, "there is out-of-band data",
            "!Ready::READABLE.is_priority()";
        is_error: ERROR, "the source has an error to report",
            "Ready::ERROR.is_error()";
    }

    pub(crate) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// What sets of bits have in common.
macro_rules! bits {
    ($($type:ident),*) => {$(
        impl BitOr for $type {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $type {
            fn bitor_assign(&mut self, other: Self) {
                *self = *self | other;
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_bits(f, self.0)
            }
        }
    )*};
}

bits!(Interest, Ready);

impl BitAnd for Ready {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Sub for Ready {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// `READABLE | WRITABLE`, or `(empty)`.
fn write_bits(f: &mut fmt::Formatter<'_>, bits: u8) -> fmt::Result {
    let mut names = NAMES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| name);
    match names.next() {
        None => f.write_str("(empty)"),
        Some(first) => {
            f.write_str(first)?;
            names.try_for_each(|name| write!(f, " | {name}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interest_ends_with_its_readiness_or_with_the_close() {
        assert_eq!(Interest::READABLE.mask(), Ready::READ);
        assert_eq!(Interest::WRITABLE.mask(), Ready::WRITE);
        assert_eq!(Interest::ERROR.mask(), Ready::ERROR);
        assert_eq!((Interest::READABLE | Interest::WRITABLE).mask(), Ready::READ | Ready::WRITE);
    }

    #[test]
    fn an_end_is_refuted_by_its_own_direction_alone() {
        assert_eq!(Interest::READABLE.refuted(), Ready::READ);
        assert_eq!(Interest::WRITABLE.refuted(), Ready::WRITE);
        let both = Interest::READABLE | Interest::WRITABLE;
        assert_eq!(both.refuted(), Ready::READABLE | Ready::WRITABLE);
        assert_eq!(
            (Interest::READABLE | Interest::ERROR).refuted(),
            Ready::READABLE | Ready::ERROR
        );
        #[cfg(target_os = "linux")]
        assert_eq!(Interest::PRIORITY.refuted(), Ready::URGENT);
    }

    #[test]
    fn bits_are_shown_by_name() {
        assert_eq!(format!("{:?}", Interest::READABLE | Interest::ERROR), "READABLE | ERROR");
        assert_eq!(format!("{:?}", Ready::EMPTY), "(empty)");
        assert_eq!(format!("{:?}", Ready::READ_CLOSED), "READ_CLOSED");
    }

    #[test]
    fn an_interest_in_errors_alone_is_registered_as_reading() {
        assert!(Interest::ERROR.to_mio().is_readable());
        assert!(!Interest::WRITABLE.to_mio().is_readable());
    }
}
