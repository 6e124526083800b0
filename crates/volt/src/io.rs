//! Asynchronous input and output: traits, utilities, and readiness.
//!
//! The traits and their extension methods are those of the `tokio` crate, re-exported, so that
//! libraries written for them take Volt's sockets as they are.

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
