//! An open file.

use std::fs::{File as StdFile, Metadata, Permissions};
use std::future::poll_fn;
use std::io::{self, IoSlice, SeekFrom};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
use volt_sync::{Mutex, MutexGuard};

use super::{FileTimes, OpenOptions, blocking};
use crate::io::blocking::{Blocking, MOST_BUFFERED};
use crate::runtime::context;

/// An open file, to be read, written and sought with the traits of [`volt::io`](crate::io).
///
/// A write is copied into a buffer and done in the background, so it may fail after it was reported
/// as done: the error comes with the next call. [`flush`](crate::io::AsyncWriteExt::flush) waits for
/// it; do so before dropping the file, which waits for nothing.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path().join("file");
/// use std::io::SeekFrom;
/// use volt::fs::File;
/// use volt::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
///
/// volt::run(async {
///     let mut file = File::options().read(true).write(true).create_new(true).open(&path).await?;
///     file.write_all(b"one two").await?;
///     file.seek(SeekFrom::Start(4)).await?;
///     let mut text = String::new();
///     file.read_to_string(&mut text).await?;
///     assert_eq!(text, "two");
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct File {
    file: Arc<StdFile>,
    /// Locked only by the methods that take `&self`.
    operations: Mutex<Blocking<Arc<StdFile>>>,
    max_buf_size: usize,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// As [`std::fs::File::open`].
    ///
    /// ```
    /// # volt::run(async {
    /// let error = volt::fs::File::open("/no/such/file").await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// # });
    /// ```
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new().read(true).open_as("File::open", path.as_ref()).await
    }

    /// Makes a file for writing, or empties the one that is there.
    ///
    /// # Errors
    /// As [`std::fs::File::create`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// file.flush().await?;
    /// assert_eq!(volt::fs::read(&path).await?, b"hello");
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open_as("File::create", path.as_ref()).await
    }

    /// Makes a file for reading and writing, and fails if there is one.
    ///
    /// # Errors
    /// As [`std::fs::File::create_new`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// let file = File::create_new(&path).await?;
    /// assert!(File::create_new(&path).await.is_err());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn create_new<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options.open_as("File::create_new", path.as_ref()).await
    }

    /// Options to open a file with.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// let file = volt::fs::File::options().append(true).create(true).open(&path).await?;
    /// assert_eq!(file.metadata().await?.len(), 0);
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Takes over an open file.
    ///
    /// ```
    /// # volt::run(async {
    /// use volt::io::AsyncWriteExt;
    ///
    /// let file: std::fs::File = tempfile::tempfile()?;
    /// let mut file = volt::fs::File::from_std(file);
    /// file.write_all(b"hello").await?;
    /// file.flush().await?;
    /// assert_eq!(file.metadata().await?.len(), 5);
    /// # std::io::Result::Ok(())
    /// # })
    /// # .unwrap();
    /// ```
    #[must_use]
    pub fn from_std(file: StdFile) -> Self {
        let file = Arc::new(file);
        let operations = Mutex::new(Blocking::seekable(file.clone()));
        Self { file, operations, max_buf_size: MOST_BUFFERED }
    }

    /// Waits for the operation under way, and gives the file back.
    ///
    /// Bytes that were read ahead are given back to the file's position.
    ///
    /// # Panics
    /// If a call such as [`metadata`](Self::metadata), which does not need the file for itself, was cancelled
    /// and is still under way: it may have the file for a while. [`try_into_std`](Self::try_into_std) gives it
    /// back then.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// let file: std::fs::File = file.into_std().await;
    /// assert_eq!(file.metadata()?.len(), 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn into_std(mut self) -> StdFile {
        // Also if it is lost, or has failed.
        let _ = poll_fn(|cx| self.operations.get_mut().poll_settled(cx)).await;
        self.give_back().unwrap_or_else(|_| {
            panic!("a cancelled call still has the file: `metadata` or another")
        })
    }

    /// Gives the file back, unless an operation is under way, also one that was cancelled, or a write has failed and
    /// nobody has been told: the next call, such as [`flush`](crate::io::AsyncWriteExt::flush), returns its error.
    ///
    /// Bytes that were read ahead are given back to the file's position.
    ///
    /// # Errors
    /// This file.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// file.flush().await?;
    /// assert!(file.try_into_std().is_ok());
    /// # Ok(()) })
    /// # }
    /// ```
    #[allow(clippy::result_large_err, reason = "it is the file, and rare")]
    pub fn try_into_std(mut self) -> Result<StdFile, Self> {
        if self.is_elsewhere() || !self.operations.get_mut().is_done() {
            return Err(self);
        }
        self.give_back()
    }

    /// True if another thread may be at work with it. Two references are its own.
    fn is_elsewhere(&self) -> bool {
        Arc::strong_count(&self.file) > 2
    }

    /// Gives the file back, which is settled, unless a call that does not need it for itself has it.
    #[allow(clippy::result_large_err, reason = "it is the file, and rare")]
    fn give_back(self) -> Result<StdFile, Self> {
        if self.is_elsewhere() {
            return Err(self);
        }
        let Self { file, mut operations, .. } = self;
        operations.get_mut().give_back_ahead();
        drop(operations);
        let Ok(file) = Arc::try_unwrap(file) else {
            unreachable!("the others have been seen to be gone");
        };
        Ok(file)
    }

    /// A second handle to the same open file: they share the position. Bytes that a cancelled read has read ahead are given
    /// back to it, if the file has one.
    ///
    /// # Errors
    /// As [`std::fs::File::try_clone`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// let mut other = file.try_clone().await?;
    /// other.write_all(b" again").await?;
    /// other.flush().await?;
    /// assert_eq!(volt::fs::read(&path).await?, b"hello again");
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn try_clone(&self) -> io::Result<Self> {
        self.settle().await?.give_back_ahead();
        let file = self.file.clone();
        let mut clone =
            blocking("File::try_clone", move || file.try_clone()).await.map(Self::from_std)?;
        clone.set_max_buf_size(self.max_buf_size);
        Ok(clone)
    }

    /// What the file system knows of it.
    ///
    /// # Errors
    /// As [`std::fs::File::metadata`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// file.flush().await?;
    /// assert_eq!(file.metadata().await?.len(), 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let file = self.file.clone();
        blocking("File::metadata", move || file.metadata()).await
    }

    /// Changes the permissions.
    ///
    /// # Errors
    /// As [`std::fs::File::set_permissions`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// let mut permissions = file.metadata().await?.permissions();
    /// permissions.set_readonly(true);
    /// file.set_permissions(permissions).await?;
    /// assert!(file.metadata().await?.permissions().readonly());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        let file = self.file.clone();
        blocking("File::set_permissions", move || file.set_permissions(permissions)).await
    }

    /// Cuts the file, or fills it with zeros, to this length. Waits for writes under way first.
    ///
    /// # Cancel safety
    /// If it is dropped after it has begun, it is done all the same, before the next operation on this handle.
    ///
    /// # Errors
    /// As [`std::fs::File::set_len`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// file.set_len(2).await?;
    /// assert_eq!(volt::fs::read(&path).await?, b"he");
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn set_len(&self, length: u64) -> io::Result<()> {
        let mut operations = self.settle().await?;
        context::require("File::set_len");
        operations.start_change(move |file| file.set_len(length));
        poll_fn(|cx| operations.poll_changed(cx)).await
    }

    /// Waits for writes under way, and until content and metadata are on the disk.
    ///
    /// # Errors
    /// As [`std::fs::File::sync_all`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// file.sync_all().await?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn sync_all(&self) -> io::Result<()> {
        drop(self.settle().await?);
        let file = self.file.clone();
        blocking("File::sync_all", move || file.sync_all()).await
    }

    /// As [`sync_all`](Self::sync_all), without metadata that reading does not need.
    ///
    /// # Errors
    /// As [`std::fs::File::sync_data`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// file.sync_data().await?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn sync_data(&self) -> io::Result<()> {
        drop(self.settle().await?);
        let file = self.file.clone();
        blocking("File::sync_data", move || file.sync_data()).await
    }

    /// Sets when the file was last read, written and made. Waits for writes under way first, which
    /// would change it again.
    ///
    /// # Errors
    /// As [`std::fs::File::set_times`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// use std::time::{Duration, SystemTime};
    /// use volt::fs::FileTimes;
    /// let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    /// file.set_times(FileTimes::new().set_accessed(then).set_modified(then)).await?;
    /// assert_eq!(file.metadata().await?.modified()?, then);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        drop(self.settle().await?);
        let file = self.file.clone();
        blocking("File::set_times", move || file.set_times(times)).await
    }

    /// Sets when the file was last written: [`set_times`](Self::set_times) with that alone.
    ///
    /// # Errors
    /// As `set_times`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// use std::time::{Duration, SystemTime};
    /// let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    /// file.set_modified(then).await?;
    /// assert_eq!(file.metadata().await?.modified()?, then);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time)).await
    }

    /// How many bytes one operation moves at most, and the buffer may hold; 2 MiB by default.
    ///
    /// # Panics
    /// If it is none.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// file.set_max_buf_size(64 * 1024);
    /// assert_eq!(file.max_buf_size(), 64 * 1024);
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn set_max_buf_size(&mut self, bytes: usize) {
        assert!(bytes > 0, "`max_buf_size` must be greater than 0");
        self.max_buf_size = bytes;
        self.operations.get_mut().set_most_buffered(bytes);
    }

    /// What [`set_max_buf_size`](Self::set_max_buf_size) has set, or the default.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::File;
    /// use volt::io::AsyncWriteExt;
    /// let mut file = File::create(&path).await?;
    /// file.write_all(b"hello").await?;
    /// assert_eq!(file.max_buf_size(), 2 * 1024 * 1024);
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn max_buf_size(&self) -> usize {
        self.max_buf_size
    }

    /// Waits for the operation under way. No other one begins as long as the result exists.
    async fn settle(&self) -> io::Result<MutexGuard<'_, Blocking<Arc<StdFile>>>> {
        let mut operations = self.operations.lock().await;
        poll_fn(|cx| operations.poll_settled(cx)).await?;
        Ok(operations)
    }
}

impl From<StdFile> for File {
    fn from(file: StdFile) -> Self {
        Self::from_std(file)
    }
}

impl AsyncRead for File {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.operations.get_mut().poll_read(cx, to)
    }
}

impl AsyncSeek for File {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        self.operations.get_mut().start_seek(to)
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.operations.get_mut().poll_position(cx)
    }
}

impl AsyncWrite for File {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.operations.get_mut().poll_write(cx, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.operations.get_mut().poll_write_vectored(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.operations.get_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(unix)]
impl From<std::os::fd::OwnedFd> for File {
    fn from(fd: std::os::fd::OwnedFd) -> Self {
        Self::from_std(fd.into())
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for File {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(unix)]
impl std::os::fd::AsRawFd for File {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.file.as_raw_fd()
    }
}

#[cfg(unix)]
impl std::os::fd::FromRawFd for File {
    /// # Safety
    /// 1. `fd` is open, and the caller's to give away.
    unsafe fn from_raw_fd(fd: std::os::fd::RawFd) -> Self {
        // SAFETY: (1) by the caller's promise.
        Self::from_std(unsafe { StdFile::from_raw_fd(fd) })
    }
}
