//! Pipes and FIFOs: bytes in one direction, between processes of one machine.
//!
//! # Examples
//! What a child process prints, through a pipe that is its standard output:
//! ```
//! # volt::run(async {
//! use volt::io::AsyncReadExt;
//! use volt::net::unix::pipe;
//!
//! let (sender, mut receiver) = pipe::pipe()?;
//! let output = sender.into_blocking_fd()?; // a child does not expect one that is not
//! let mut child = std::process::Command::new("echo").arg("hello").stdout(output).spawn()?;
//! let mut said = String::new();
//! receiver.read_to_string(&mut said).await?;
//! assert_eq!(said, "hello\n");
//! assert!(child.wait()?.success());
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use mio::unix::pipe;
use socket2::SockRef;

use crate::io::{Evented, Interest};
use crate::reactor::{Handle, Start};

/// A new pipe: what is written to the sender comes out of the receiver.
///
/// # Errors
/// Whatever `pipe2(2)` reports.
///
/// # Panics
/// Outside a runtime.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
///
/// let (mut sender, mut receiver) = volt::net::unix::pipe::pipe()?;
/// sender.write_all(b"hello").await?;
/// drop(sender);
/// let mut all = String::new();
/// receiver.read_to_string(&mut all).await?;
/// assert_eq!(all, "hello");
/// # Ok(()) })
/// # }
/// ```
#[track_caller]
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (sender, receiver) = pipe::new()?;
    Ok((Sender::new("pipe::pipe", sender)?, Receiver::new("pipe::pipe", receiver)?))
}

/// How to open a FIFO, a pipe with a name in the file system.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("fifo");
/// # std::process::Command::new("mkfifo").arg(&path).status()?;
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// use volt::net::unix::pipe::OpenOptions;
///
/// let mut receiver = OpenOptions::new().open_receiver(&path)?;
/// let mut sender = OpenOptions::new().open_sender(&path)?;
/// sender.write_all(b"hello").await?;
/// let mut buf = [0; 5];
/// receiver.read_exact(&mut buf).await?;
/// assert_eq!(&buf, b"hello");
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    /// The default: one direction, and only what is a FIFO.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let options = volt::net::unix::pipe::OpenOptions::new();
    /// let error = options.open_receiver("/dev/null").unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to open the FIFO for both directions (Linux): a sender need not wait for a receiver
    /// to be there, and a receiver sees no end when the last sender goes.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("fifo");
    /// # std::process::Command::new("mkfifo").arg(&path).status()?;
    /// use volt::net::unix::pipe::OpenOptions;
    ///
    /// assert!(OpenOptions::new().open_sender(&path).is_err());
    /// let sender = OpenOptions::new().read_write(true).open_sender(&path)?;
    /// assert_eq!(sender.try_write(b"hello")?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn read_write(&mut self, value: bool) -> &mut Self {
        self.read_write = value;
        self
    }

    /// Whether to take it on trust that the path is a FIFO. What is none may block its thread.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("fifo");
    /// # std::process::Command::new("mkfifo").arg(&path).status()?;
    /// use volt::net::unix::pipe::OpenOptions;
    ///
    /// // Made by `mkfifo`: there is no need to look.
    /// let receiver = OpenOptions::new().unchecked(true).open_receiver(&path)?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn unchecked(&mut self, value: bool) -> &mut Self {
        self.unchecked = value;
        self
    }

    /// Opens the FIFO at `path` for reading. It is open before there is a sender; a read waits until there has
    /// been one, and finds the end when the last one has gone.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the path is no FIFO; whatever `open(2)`
    /// reports.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("fifo");
    /// # std::process::Command::new("mkfifo").arg(&path).status()?;
    /// use volt::io::{AsyncReadExt, AsyncWriteExt};
    /// use volt::net::unix::pipe::OpenOptions;
    ///
    /// let mut receiver = OpenOptions::new().open_receiver(&path)?;
    /// let mut sender = OpenOptions::new().open_sender(&path)?;
    /// sender.write_all(b"hello").await?;
    /// drop(sender);
    /// let mut all = String::new();
    /// receiver.read_to_string(&mut all).await?;
    /// assert_eq!(all, "hello");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn open_receiver<P: AsRef<Path>>(&self, path: P) -> io::Result<Receiver> {
        let mut how = File::options();
        how.read(true);
        let fd = OwnedFd::from(self.open(path.as_ref(), how)?);
        Receiver::taken("pipe::OpenOptions::open_receiver", fd)
    }

    /// Opens the FIFO at `path` for writing.
    ///
    /// # Errors
    /// As [`open_receiver`](Self::open_receiver); `ENXIO` if nobody has it open for reading.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("fifo");
    /// # std::process::Command::new("mkfifo").arg(&path).status()?;
    /// use volt::net::unix::pipe::OpenOptions;
    ///
    /// let nobody = OpenOptions::new().open_sender(&path).unwrap_err();
    /// assert_eq!(nobody.raw_os_error(), Some(libc::ENXIO));
    /// let _receiver = OpenOptions::new().open_receiver(&path)?;
    /// assert!(OpenOptions::new().open_sender(&path).is_ok());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn open_sender<P: AsRef<Path>>(&self, path: P) -> io::Result<Sender> {
        let mut how = File::options();
        how.write(true);
        let fd = OwnedFd::from(self.open(path.as_ref(), how)?);
        Sender::taken("pipe::OpenOptions::open_sender", fd)
    }

    fn open(&self, path: &Path, mut how: std::fs::OpenOptions) -> io::Result<File> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.read_write {
            how.read(true).write(true);
        }
        let file = how.custom_flags(libc::O_NONBLOCK).open(path)?;
        if self.unchecked { Ok(file) } else { check_pipe(file) }
    }
}

fn check_pipe(file: File) -> io::Result<File> {
    if file.metadata()?.file_type().is_fifo() { Ok(file) } else { Err(invalid("not a pipe")) }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Whether a descriptor was opened for what its end of a pipe does.
fn check_access(fd: BorrowedFd<'_>, wanted: libc::c_int, what: &'static str) -> io::Result<()> {
    let mode = super::flags(fd)? & libc::O_ACCMODE;
    if mode == wanted || mode == libc::O_RDWR { Ok(()) } else { Err(invalid(what)) }
}

/// Constructors and destructors of an end. `$setup` makes `a`, such an end, and `b`, the other.
macro_rules! end {
    ($type:ident, $interest:expr, $access:expr, $start:expr, $denied:literal, $setup:literal) => {
        impl $type {
            /// Takes over an end of a pipe whose other end is, or was, there.
            #[track_caller]
            pub(crate) fn new(caller: &'static str, io: pipe::$type) -> io::Result<Self> {
                Self::starting(caller, io, Start::Open)
            }

            /// Takes over what may be an end of a FIFO.
            #[track_caller]
            fn taken(caller: &'static str, fd: OwnedFd) -> io::Result<Self> {
                Self::starting(caller, fd.into(), $start)
            }

            #[track_caller]
            fn starting(
                caller: &'static str,
                io: pipe::$type,
                start: Start,
            ) -> io::Result<Self> {
                let handle = Handle::current(caller);
                Ok(Self { io: Evented::new(handle, io, $interest, start)? })
            }

            /// `from_file`, for the function `caller`.
            #[track_caller]
            fn checked(caller: &'static str, file: File) -> io::Result<Self> {
                let file = check_pipe(file)?;
                check_access(file.as_fd(), $access, $denied)?;
                SockRef::from(&file).set_nonblocking(true)?;
                Self::taken(caller, file.into())
            }

            /// Takes over an open file, which must be this end of a pipe, and makes it non-blocking.
            ///
            /// # Errors
            /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is no pipe, or not open for this
            /// direction; if it cannot be registered.
            ///
            /// # Panics
            /// Outside a runtime.
            ///
            /// # Examples
            #[doc = crate::net::share::example!($setup, "
use volt::net::unix::pipe::", stringify!($type), ";
let file = std::fs::File::from(a.into_blocking_fd()?);
let a = ", stringify!($type), "::from_file(file)?;
let no_pipe = ", stringify!($type), "::from_file(std::fs::File::open(\"/dev/null\")?);
assert_eq!(no_pipe.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
")]
            #[track_caller]
            pub fn from_file(file: File) -> io::Result<Self> {
                Self::checked(concat!("pipe::", stringify!($type), "::from_file"), file)
            }

            /// Takes over a descriptor; as [`from_file`](Self::from_file).
            ///
            /// # Errors
            /// As `from_file`.
            ///
            /// # Panics
            /// Outside a runtime.
            ///
            /// # Examples
            #[doc = crate::net::share::example!($setup, "
use volt::net::unix::pipe::", stringify!($type), ";
let a = ", stringify!($type), "::from_owned_fd(a.into_blocking_fd()?)?;
")]
            #[track_caller]
            pub fn from_owned_fd(fd: OwnedFd) -> io::Result<Self> {
                Self::checked(concat!("pipe::", stringify!($type), "::from_owned_fd"), fd.into())
            }

            /// Takes over an open file without a look at it: the caller knows that it is this end of
            /// a pipe, and non-blocking. One that blocks would stop a worker.
            ///
            /// # Errors
            /// If it cannot be registered.
            ///
            /// # Panics
            /// Outside a runtime.
            ///
            /// # Examples
            #[doc = crate::net::share::example!($setup, "
use volt::net::unix::pipe::", stringify!($type), ";
let file = std::fs::File::from(a.into_nonblocking_fd()?);
let a = ", stringify!($type), "::from_file_unchecked(file)?;
")]
            #[track_caller]
            pub fn from_file_unchecked(file: File) -> io::Result<Self> {
                let caller = concat!("pipe::", stringify!($type), "::from_file_unchecked");
                Self::taken(caller, file.into())
            }

            /// Takes over a descriptor; as [`from_file_unchecked`](Self::from_file_unchecked).
            ///
            /// # Errors
            /// If it cannot be registered.
            ///
            /// # Panics
            /// Outside a runtime.
            ///
            /// # Examples
            #[doc = crate::net::share::example!($setup, "
use volt::net::unix::pipe::", stringify!($type), ";
let a = ", stringify!($type), "::from_owned_fd_unchecked(a.into_nonblocking_fd()?)?;
")]
            #[track_caller]
            pub fn from_owned_fd_unchecked(fd: OwnedFd) -> io::Result<Self> {
                Self::taken(concat!("pipe::", stringify!($type), "::from_owned_fd_unchecked"), fd)
            }

            /// Gives the descriptor up, set to blocking, for a child process for one.
            ///
            /// # Errors
            /// If it cannot be taken out of the runtime, or whatever `fcntl(2)` reports.
            ///
            /// # Examples
            #[doc = crate::net::share::example!($setup, "let fd = a.into_blocking_fd()?;\n")]
            pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
                let io = self.io.into_inner()?;
                io.set_nonblocking(false)?;
                Ok(io.into())
            }

            /// Gives the descriptor up, in non-blocking mode.
            ///
            /// # Errors
            /// If it cannot be taken out of the runtime.
            ///
            /// # Examples
            #[doc = crate::net::share::example!($setup, "let fd = a.into_nonblocking_fd()?;\n")]
            pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
                Ok(self.io.into_inner()?.into())
            }

            /// Runs `io`, an operation of the caller's own on this pipe, if the pipe is ready; a
            /// `WouldBlock` from it takes the readiness back.
            ///
            /// # Errors
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) if it is not; whatever `io` returns.
            ///
            /// # Examples
            #[doc = crate::net::share::example!($setup,
                                "let busy = || Err::<(), _>(std::io::ErrorKind::WouldBlock.into());
assert_eq!(a.try_io(busy).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
")]
            pub fn try_io<R>(&self, io: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
                self.io.registration().try_io($interest, io)
            }
        }

        crate::net::share::descriptor!($type);
    };
}

/// The end of a pipe that is written to.
///
/// When the receiver is gone, a write fails with [`BrokenPipe`](io::ErrorKind::BrokenPipe). Dropping
/// the last sender is the receiver's end of file.
///
/// # Examples
/// ```
/// # volt::run(async {
/// use volt::io::AsyncWriteExt;
///
/// let (mut sender, receiver) = volt::net::unix::pipe::pipe()?;
/// drop(receiver);
/// let error = sender.write_all(b"hello").await.unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct Sender {
    io: Evented<pipe::Sender>,
}

/// The end of a pipe that is read.
///
/// # Examples
/// ```
/// # volt::run(async {
/// use volt::io::AsyncReadExt;
///
/// let (sender, mut receiver) = volt::net::unix::pipe::pipe()?;
/// sender.try_write(b"hello")?;
/// drop(sender);
/// let mut all = Vec::new();
/// receiver.read_to_end(&mut all).await?;
/// assert_eq!(all, b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct Receiver {
    io: Evented<pipe::Receiver>,
}

end!(
    Sender,
    Interest::WRITABLE,
    libc::O_WRONLY,
    Start::Open,
    "the pipe is not open for writing",
    "let (a, b) = volt::net::unix::pipe::pipe()?;\n"
);
crate::net::share::ready!(
    [] Sender, |this| this.io, "let (a, b) = volt::net::unix::pipe::pipe()?;\n", "", "WRITABLE"
);
crate::net::share::writer!(
    [] Sender,
    |this| this.io,
    |_this| Ok(()), // Only the drop of the last sender ends a pipe.
    "let (a, b) = volt::net::unix::pipe::pipe()?;\n"
);
crate::net::share::poll_writable!(
    Sender,
    "let (a, b) = volt::net::unix::pipe::pipe()?;\n",
    poll_write_ready,
    try_write
);

end!(
    Receiver,
    Interest::READABLE,
    libc::O_RDONLY,
    Start::Unknown, // A read of a FIFO that is tried before there was a sender would find the end.
    "the pipe is not open for reading",
    "let (b, a) = volt::net::unix::pipe::pipe()?;\n"
);
crate::net::share::ready!(
    [] Receiver,
    |this| this.io,
    "let (b, a) = volt::net::unix::pipe::pipe()?;\n",
    "b.try_write(b\"hello\")?;\n",
    "READABLE"
);
crate::net::share::reader!(
    [] Receiver, |this| this.io, "let (b, a) = volt::net::unix::pipe::pipe()?;\n"
);
crate::net::share::poll_readable!(
    Receiver,
    "let (b, a) = volt::net::unix::pipe::pipe()?;\n",
    poll_read_ready,
    try_write,
    try_read
);
