//! Asynchronous input and output: traits, utilities, and readiness.
//!
//! The traits and their extension methods are those of the `tokio` crate, re-exported, so that
//! libraries written for them take Volt's sockets as they are. Streams in memory and copies have that
//! crate's names and signatures, but are Volt's: each of their operations takes a unit of the task's
//! [budget](crate::task::coop), so that a loop over them leaves others their turns. For the same reason
//! `volt::io::DuplexStream` is not `tokio::io::DuplexStream`, whose operations count only on Tokio.
//!
//! Adapters (`BufReader`, `take`, `lines`, ...) count as what they read from does. Bytes that are there
//! without an operation, in a `&[u8]`, a `Cursor` or a buffer, cost none: a long loop over them calls
//! [`consume_budget`](crate::task::coop::consume_budget).
//!
//! ```
//! use volt::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! volt::run(async {
//!     let (mut near, far) = volt::io::duplex(64);
//!     near.write_all(b"one\ntwo\n").await?;
//!     drop(near);
//!     let mut lines = BufReader::new(far).lines();
//!     assert_eq!(lines.next_line().await?.as_deref(), Some("one"));
//!     assert_eq!(lines.next_line().await?.as_deref(), Some("two"));
//!     assert_eq!(lines.next_line().await?, None);
//!     std::io::Result::Ok(())
//! })
//! .unwrap();
//! ```

pub(crate) mod blocking;
mod copy;
mod counted;
mod evented;
#[cfg(feature = "futures-io")]
mod futures_io;
mod interest;
mod memory;
mod raw;
mod stdio;
#[cfg(unix)]
pub mod unix;

pub(crate) use self::evented::{Evented, receive_into};
pub(crate) use self::raw::RawStream;

pub use self::copy::{copy, copy_bidirectional, copy_bidirectional_with_sizes, copy_buf};
pub use self::interest::{Interest, Ready};
pub use self::memory::{
    DuplexStream, Empty, Repeat, SimplexStream, Sink, duplex, empty, repeat, simplex, sink,
};
pub use self::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

pub use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, BufReader, BufStream, BufWriter, Join, Lines, ReadBuf, ReadHalf, Split, Take,
    WriteHalf, join, split,
};

pub use std::io::{Error, ErrorKind, Result, SeekFrom};
