//! Asynchronous input and output: traits, utilities, and readiness.
//!
//! The traits and their extension methods are those of the `tokio` crate, re-exported, so that
//! libraries written for them take Volt's sockets as they are.
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
mod evented;
#[cfg(feature = "futures-io")]
mod futures_io;
mod interest;
mod raw;
mod stdio;
#[cfg(unix)]
pub mod unix;

pub(crate) use self::evented::{Evented, receive_into};
pub(crate) use self::raw::RawStream;

pub use self::interest::{Interest, Ready};
pub use self::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

pub use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, BufReader, BufStream, BufWriter, DuplexStream, Empty, Join, Lines, ReadBuf,
    ReadHalf, Repeat, SimplexStream, Sink, Split, Take, WriteHalf, copy, copy_bidirectional,
    copy_bidirectional_with_sizes, copy_buf, duplex, empty, join, repeat, simplex, sink, split,
};

pub use std::io::{Error, ErrorKind, Result, SeekFrom};
