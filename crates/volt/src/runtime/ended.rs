//! The error of what needs a runtime that has shut down.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::io;

/// It says what has shut down.
#[derive(Debug)]
struct Ended(&'static str);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has shut down", self.0)
    }
}

impl Error for Ended {}

#[cold]
pub(crate) fn shut_down(what: &'static str) -> io::Error {
    io::Error::other(Ended(what))
}

/// True if `error` is that of a socket, a child or a signal whose runtime has shut down.
///
/// # Examples
/// ```
/// use volt::runtime::{Runtime, is_rt_shutdown_err};
///
/// let (first, second) = (Runtime::new()?, Runtime::new()?);
/// let socket = first.block_on(volt::net::UdpSocket::bind("127.0.0.1:0"))?;
/// drop(first);
/// let error = second.block_on(socket.recv(&mut [0; 8])).unwrap_err();
/// assert!(is_rt_shutdown_err(&error));
/// # std::io::Result::Ok(())
/// ```
pub fn is_rt_shutdown_err(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Ended>())
}
