//! Asynchronous reading and writing on top of a blocking file.
//!
//! Purpose: `fs::File` and the standard streams. A buffer goes to the blocking pool for each operation, with another handle of the file,
//! and comes back with its outcome. Reading copies once, from the buffer to the caller's; writing copies once,
//! from the caller's to the buffer.
//!
//! | State | The buffer              | Left by                                                                 |
//! |-------|-------------------------|-------------------------------------------------------------------------|
//! | Idle  | here                    | an operation: to Busy                                                   |
//! | Busy  | in the blocking pool    | its completion: to Idle; with an empty one if the operation was lost, since it panicked or its runtime has shut down |
#![forbid(unsafe_code)]

use std::future::Future;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::ReadBuf;
use volt_sync::coop;

use crate::runtime::{context, spawn_blocking, spawn_mandatory_blocking};
use crate::task::JoinHandle;

/// The most that one operation moves: a compromise between trips to the pool and memory.
pub(crate) const MOST_BUFFERED: usize = 2 * 1024 * 1024;

/// A file, of which there can be several handles.
pub(crate) trait Calls {
    /// The calls that a panic outside of a runtime names.
    const READ: &'static str;
    const WRITE: &'static str;
    const SEEK: &'static str;

    /// Another handle of the same open file.
    fn another(&self) -> Self;
}

macro_rules! calls {
    ($($file:ty: $name:literal, |$this:ident| $another:expr);*) => {$(
        impl Calls for $file {
            const READ: &'static str = concat!($name, "::read");
            const WRITE: &'static str = concat!($name, "::write");
            const SEEK: &'static str = concat!($name, "::seek");

            fn another(&self) -> Self {
                let $this = self;
                $another
            }
        }
    )*};
}

calls!(
    Arc<std::fs::File>: "File", |file| file.clone();
    std::io::Stdin: "Stdin", |_stdin| std::io::stdin();
    std::io::Stdout: "Stdout", |_stdout| std::io::stdout();
    std::io::Stderr: "Stderr", |_stderr| std::io::stderr()
);

/// A blocking file with asynchronous operations, one at a time.
pub(crate) struct Blocking<F> {
    file: F,
    state: State,
    /// The error of a write that had been reported as done.
    write_error: Option<io::Error>,
    /// Where the last seek went.
    position: u64,
    /// So many bytes were read ahead and forgotten, and the file's position has not been moved back over them yet.
    owed: usize,
    most_buffered: usize,
    /// Moves the file's position back over bytes that were read and not delivered.
    rewind: Rewind<F>,
}

type Rewind<F> = fn(&mut F, usize) -> io::Result<()>;

enum State {
    Idle(Buffer),
    Busy(JoinHandle<Done>),
}

/// What an operation works with.
struct Work<F> {
    file: F,
    buffer: Buffer,
}

/// What comes back from the pool.
struct Done {
    buffer: Buffer,
    outcome: Outcome,
}

pub(crate) enum Outcome {
    Read(io::Result<usize>),
    Written(io::Result<()>),
    Sought(io::Result<u64>),
    Changed(io::Result<()>),
}

/// Bytes on their way: read and not yet delivered, or to be written.
#[derive(Debug, Default)]
struct Buffer {
    /// Initialised memory; grows, and is zeroed only then.
    memory: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Moves as much as fits into `to`.
    fn deliver(&mut self, to: &mut ReadBuf<'_>) {
        let length = self.bytes().len().min(to.remaining());
        to.put_slice(&self.bytes()[..length]);
        self.start += length;
    }

    /// Reads at most `length` bytes from `file`.
    fn fill(&mut self, file: &mut impl Read, length: usize) -> io::Result<usize> {
        self.clear();
        if self.memory.len() < length {
            self.memory.resize(length, 0);
        }
        loop {
            match file.read(&mut self.memory[..length]) {
                Ok(read) => {
                    self.end = read;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes a copy of `from`, at most `most` bytes, and returns how many.
    fn copy(&mut self, from: &[IoSlice<'_>], most: usize) -> usize {
        let all = from.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()));
        let length = all.min(most);
        if self.memory.len() < length {
            // Written anew as a whole: nothing is zeroed first, nor moved.
            self.memory.clear();
            self.memory.reserve(length);
        }
        let mut end = 0;
        for part in from {
            let part = &part[..part.len().min(length - end)];
            if self.memory.len() >= end + part.len() {
                self.memory[end..][..part.len()].copy_from_slice(part);
            } else {
                self.memory.extend_from_slice(part);
            }
            end += part.len();
        }
        (self.start, self.end) = (0, length);
        length
    }
}

impl<F> Blocking<F> {
    /// For a stream without a position.
    pub(crate) fn new(file: F) -> Self {
        Self::with_rewind(file, |_, _| Ok(()))
    }

    fn with_rewind(file: F, rewind: Rewind<F>) -> Self {
        Self {
            file,
            state: State::Idle(Buffer::default()),
            write_error: None,
            position: 0,
            owed: 0,
            most_buffered: MOST_BUFFERED,
            rewind,
        }
    }

    /// For a file with a position.
    pub(crate) fn seekable(file: F) -> Self
    where
        F: Seek,
    {
        Self::with_rewind(file, |file, bytes| {
            // Buffers are far smaller than `i64::MAX`.
            file.seek(SeekFrom::Current(-(bytes as i64))).map(drop)
        })
    }

    pub(crate) fn set_most_buffered(&mut self, bytes: usize) {
        self.most_buffered = bytes;
    }

    /// Waits for the operation under way. An outcome is returned the first time that it is seen.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Outcome>>> {
        match &mut self.state {
            State::Idle(_) => Poll::Ready(Ok(None)),
            State::Busy(operation) => {
                let Ok(done) = ready!(Pin::new(operation).poll(cx)) else {
                    self.state = State::Idle(Buffer::default());
                    return Poll::Ready(Err(lost()));
                };
                self.state = State::Idle(done.buffer);
                self.owed = 0;
                Poll::Ready(Ok(Some(done.outcome)))
            }
        }
    }

    /// As `poll_idle`, keeping what later calls ask for: a failed write's error, the position.
    pub(crate) fn poll_settled(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Outcome>>> {
        let outcome = ready!(self.poll_idle(cx))?;
        match outcome {
            Some(Outcome::Written(Err(error))) => {
                self.write_error = Some(error);
                return Poll::Ready(Ok(None));
            }
            Some(Outcome::Sought(Ok(position))) => self.position = position,
            _ => {}
        }
        Poll::Ready(Ok(outcome))
    }

    /// Looks whether all is done, and no error of a write is left to be returned by the next call.
    pub(crate) fn is_done(&mut self) -> bool {
        let is_under_way =
            matches!(&self.state, State::Busy(operation) if !operation.is_finished());
        if is_under_way || self.write_error.is_some() {
            // Not touched: somebody may wait for what is under way, or for how it has ended.
            return false;
        }
        let mut cx = Context::from_waker(Waker::noop());
        // A look is no operation that could be refused. What is lost is not under way any more, either.
        let settled = coop::with_budget(None, || self.poll_settled(&mut cx));
        settled.is_ready() && self.write_error.is_none()
    }

    fn buffer(&mut self) -> &mut Buffer {
        match &mut self.state {
            State::Idle(buffer) => buffer,
            State::Busy(_) => unreachable!("settled just before"),
        }
    }

    /// Waits until every write is done.
    ///
    /// # Errors
    /// Of the last write.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_settled(cx))?;
        Poll::Ready(self.write_error.take().map_or(Ok(()), Err))
    }
}

impl<F: Calls + Send + 'static> Blocking<F> {
    /// The buffer and the file, together with `operation`, for the pool. The operation is told whether the position could be
    /// moved back over what was forgotten. (If it is lost, the next one does that.)
    fn prepare(
        &mut self,
        operation: impl FnOnce(&mut Work<F>, io::Result<()>) -> Outcome + Send + 'static,
    ) -> impl FnOnce() -> Done + Send + 'static {
        let mut work = Work { file: self.file.another(), buffer: std::mem::take(self.buffer()) };
        let (rewind, owed) = (self.rewind, self.owed);
        move || {
            let rewound = if owed > 0 { rewind(&mut work.file, owed) } else { Ok(()) };
            let outcome = operation(&mut work, rewound);
            Done { buffer: work.buffer, outcome }
        }
    }

    /// Sends the buffer to the pool with `operation`. The caller has seen to it that there is a runtime
    /// before it changed anything.
    fn start(
        &mut self,
        operation: impl FnOnce(&mut Work<F>, io::Result<()>) -> Outcome + Send + 'static,
    ) {
        self.state = State::Busy(spawn_blocking(self.prepare(operation)));
    }

    /// As [`start`](Self::start), for what is reported as done at once: a shutdown runs it still.
    fn start_mandatory(
        &mut self,
        operation: impl FnOnce(&mut Work<F>, io::Result<()>) -> Outcome + Send + 'static,
    ) -> io::Result<()> {
        let job = self.prepare(operation);
        self.state = State::Busy(spawn_mandatory_blocking(job)?);
        Ok(())
    }

    /// Reads into `to`.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>>
    where
        F: Read,
    {
        loop {
            match ready!(self.poll_settled(cx))? {
                Some(Outcome::Read(Err(error))) => return Poll::Ready(Err(error)),
                Some(Outcome::Read(Ok(0))) => return Poll::Ready(Ok(())),
                _ => {}
            }
            let buffer = self.buffer();
            if to.remaining() == 0 || !buffer.bytes().is_empty() {
                buffer.deliver(to);
                return Poll::Ready(Ok(()));
            }
            let length = to.remaining().min(self.most_buffered);
            context::require(F::READ);
            self.start(move |work, rewound| {
                Outcome::Read(rewound.and_then(|()| work.buffer.fill(&mut work.file, length)))
            });
        }
    }

    /// Takes a copy of `from`, as much as fits the buffer, and writes it in the background.
    ///
    /// # Errors
    /// Of the write before.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>>
    where
        F: Write,
    {
        self.poll_write_vectored(cx, &[IoSlice::new(from)])
    }

    /// As [`poll_write`](Self::poll_write), from several places.
    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>
    where
        F: Write,
    {
        ready!(self.poll_settled(cx))?;
        if let Some(error) = self.write_error.take() {
            return Poll::Ready(Err(error));
        }
        context::require(F::WRITE);
        self.forget_unread();
        let most = self.most_buffered;
        let length = self.buffer().copy(from, most);
        self.start_mandatory(move |work, rewound| {
            let result = rewound.and_then(|()| work.file.write_all(work.buffer.bytes()));
            work.buffer.clear();
            Outcome::Written(result.and_then(|()| work.file.flush()))
        })?;
        Poll::Ready(Ok(length))
    }

    /// Begins to change the file itself, once it is [settled](Self::poll_settled). Bytes that were read ahead are read
    /// anew afterwards.
    pub(crate) fn start_change(
        &mut self,
        change: impl FnOnce(&mut F) -> io::Result<()> + Send + 'static,
    ) {
        self.forget_unread();
        self.start(move |work, rewound| {
            Outcome::Changed(rewound.and_then(|()| change(&mut work.file)))
        });
    }

    /// Forgets what was read ahead. The next operation moves the file's position back over that.
    fn forget_unread(&mut self) {
        let buffer = self.buffer();
        let unread = buffer.bytes().len();
        buffer.clear();
        self.owed += unread;
    }

    /// Waits for the change that was begun.
    pub(crate) fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(self.poll_settled(cx))? {
            Some(Outcome::Changed(result)) => Poll::Ready(result),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Begins to move the position. Bytes that were read ahead do not count.
    ///
    /// # Errors
    /// If another operation is under way.
    pub(crate) fn start_seek(&mut self, to: SeekFrom) -> io::Result<()>
    where
        F: Seek,
    {
        if !matches!(self.state, State::Idle(_)) {
            let message = "another operation on the file is pending; wait for it before seeking";
            return Err(io::Error::other(message));
        }
        context::require(F::SEEK);
        self.forget_unread();
        self.start(move |work, rewound| {
            // From the start or the end it does not matter where it is.
            let sought = if matches!(to, SeekFrom::Current(_)) { rewound } else { Ok(()) };
            Outcome::Sought(sought.and_then(|()| work.file.seek(to)))
        });
        Ok(())
    }

    /// Waits for the seek under way, if any, and returns the position that the last one reached.
    pub(crate) fn poll_position(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        match ready!(self.poll_settled(cx))? {
            Some(Outcome::Sought(result)) => Poll::Ready(result),
            _ => Poll::Ready(Ok(self.position)),
        }
    }

    /// Moves the file's position back over what was read ahead, once it is [settled](Self::poll_settled): somebody else will
    /// use it. That does not block, and needs no runtime. A file without a position keeps what was read.
    pub(crate) fn give_back_ahead(&mut self) {
        let ahead = self.owed + self.buffer().bytes().len();
        if ahead > 0 && (self.rewind)(&mut self.file, ahead).is_ok() {
            self.buffer().clear();
            self.owed = 0;
        }
    }
}

/// The operation panicked, or the runtime was shut down before it ran.
pub(crate) fn lost() -> io::Error {
    io::Error::other("the blocking operation panicked or its runtime was shut down")
}

impl<F> std::fmt::Debug for Blocking<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let busy = !matches!(self.state, State::Idle(_));
        f.debug_struct("Blocking").field("busy", &busy).finish_non_exhaustive()
    }
}
