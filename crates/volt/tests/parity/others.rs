// Included by `parity.rs` once with `rt` for Tokio and once with `rt` for Volt: files, processes, the runtime, signals, tasks and time.
//
// What is not in Tokio's signature in the same way is in `docs/design/tokio-api.md`.

use std::error::Error;
use std::fmt::{Debug, Display};
use std::future::Ready;
use std::hash::Hash;
use std::io;
use std::ops::{Add, AddAssign, BitAnd, BitOr, BitOrAssign, Deref, DerefMut, Sub, SubAssign};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::Poll;
use std::time::Duration;

use rt::{fs, process, runtime, signal, task, time};

use super::super::{Cx, any};

/// `'a` is a lifetime of the type, `'b` the one of `self`, `'c` that of other arguments.
#[allow(clippy::too_many_lines, reason = "a list")]
pub(crate) async fn others<'a: 'b + 'c, 'b: 'c, 'c>() {
    calls! { fs::DirBuilder:
        async fn create(&'b fs::DirBuilder, &Path) -> io::Result<()>;
        fn mode(&'b mut fs::DirBuilder, u32) -> &'b mut fs::DirBuilder;
        fn new() -> fs::DirBuilder;
        fn recursive(&'b mut fs::DirBuilder, bool) -> &'b mut fs::DirBuilder;
    }
    calls! { fs::DirEntry:
        fn file_name(&'b fs::DirEntry) -> std::ffi::OsString;
        async fn file_type(&'b fs::DirEntry) -> io::Result<std::fs::FileType>;
        fn ino(&'b fs::DirEntry) -> u64;
        async fn metadata(&'b fs::DirEntry) -> io::Result<std::fs::Metadata>;
        fn path(&'b fs::DirEntry) -> PathBuf;
    }
    calls! { fs::File:
        async fn create(&Path) -> io::Result<fs::File>;
        async fn create_new::<&Path>(&Path) -> io::Result<fs::File>;
        fn from_std(std::fs::File) -> fs::File;
        async fn into_std(fs::File) -> std::fs::File;
        fn max_buf_size(&'b fs::File) -> usize;
        async fn metadata(&'b fs::File) -> io::Result<std::fs::Metadata>;
        async fn open(&Path) -> io::Result<fs::File>;
        fn options() -> fs::OpenOptions;
        async fn set_len(&'b fs::File, u64) -> io::Result<()>;
        fn set_max_buf_size(&'b mut fs::File, usize);
        async fn set_modified(&'b fs::File, std::time::SystemTime) -> io::Result<()>;
        async fn set_permissions(&'b fs::File, std::fs::Permissions) -> io::Result<()>;
        async fn set_times(&'b fs::File, fs::FileTimes) -> io::Result<()>;
        async fn sync_all(&'b fs::File) -> io::Result<()>;
        async fn sync_data(&'b fs::File) -> io::Result<()>;
        async fn try_clone(&'b fs::File) -> io::Result<fs::File>;
        fn try_into_std(fs::File) -> Result<std::fs::File, fs::File>;
    }
    calls! { fs::FileTimes:
        fn new() -> fs::FileTimes;
        fn set_accessed(fs::FileTimes, std::time::SystemTime) -> fs::FileTimes;
        fn set_modified(fs::FileTimes, std::time::SystemTime) -> fs::FileTimes;
    }
    calls! { fs::OpenOptions:
        fn append(&'b mut fs::OpenOptions, bool) -> &'b mut fs::OpenOptions;
        fn create(&'b mut fs::OpenOptions, bool) -> &'b mut fs::OpenOptions;
        fn create_new(&'b mut fs::OpenOptions, bool) -> &'b mut fs::OpenOptions;
        fn custom_flags(&'b mut fs::OpenOptions, i32) -> &'b mut fs::OpenOptions;
        fn mode(&'b mut fs::OpenOptions, u32) -> &'b mut fs::OpenOptions;
        fn new() -> fs::OpenOptions;
        async fn open(&'b fs::OpenOptions, &Path) -> io::Result<fs::File>;
        fn read(&'b mut fs::OpenOptions, bool) -> &'b mut fs::OpenOptions;
        fn truncate(&'b mut fs::OpenOptions, bool) -> &'b mut fs::OpenOptions;
        fn write(&'b mut fs::OpenOptions, bool) -> &'b mut fs::OpenOptions;
    }
    calls! { fs::ReadDir:
        async fn next_entry(&'b mut fs::ReadDir) -> io::Result<Option<fs::DirEntry>>;
        fn poll_next_entry(&'b mut fs::ReadDir, Cx<'c>) -> Poll<io::Result<Option<fs::DirEntry>>>;
    }
    calls! { rt::io::Interest:
        fn add(rt::io::Interest, rt::io::Interest) -> rt::io::Interest;
        fn is_error(rt::io::Interest) -> bool;
        fn is_priority(rt::io::Interest) -> bool;
        fn is_readable(rt::io::Interest) -> bool;
        fn is_writable(rt::io::Interest) -> bool;
        fn remove(rt::io::Interest, rt::io::Interest) -> Option<rt::io::Interest>;
    }
    calls! { rt::io::Ready:
        fn is_empty(rt::io::Ready) -> bool;
        fn is_error(rt::io::Ready) -> bool;
        fn is_priority(rt::io::Ready) -> bool;
        fn is_read_closed(rt::io::Ready) -> bool;
        fn is_readable(rt::io::Ready) -> bool;
        fn is_writable(rt::io::Ready) -> bool;
        fn is_write_closed(rt::io::Ready) -> bool;
    }
    calls! { rt::io::SimplexStream:
        fn new_unsplit(usize) -> rt::io::SimplexStream;
    }
    calls! { process::Child:
        fn id(&'b process::Child) -> Option<u32>;
        async fn kill(&'b mut process::Child) -> io::Result<()>;
        fn start_kill(&'b mut process::Child) -> io::Result<()>;
        fn try_wait(&'b mut process::Child) -> io::Result<Option<ExitStatus>>;
        async fn wait(&'b mut process::Child) -> io::Result<ExitStatus>;
        async fn wait_with_output(process::Child) -> io::Result<std::process::Output>;
    }
    calls! { process::ChildStderr:
        fn from_std(std::process::ChildStderr) -> io::Result<process::ChildStderr>;
        fn into_owned_fd(process::ChildStderr) -> io::Result<OwnedFd>;
    }
    calls! { process::ChildStdin:
        fn from_std(std::process::ChildStdin) -> io::Result<process::ChildStdin>;
        fn into_owned_fd(process::ChildStdin) -> io::Result<OwnedFd>;
    }
    calls! { process::ChildStdout:
        fn from_std(std::process::ChildStdout) -> io::Result<process::ChildStdout>;
        fn into_owned_fd(process::ChildStdout) -> io::Result<OwnedFd>;
    }
    calls! { process::Command:
        fn arg(&'b mut process::Command, &str) -> &'b mut process::Command;
        fn arg0(&'b mut process::Command, &str) -> &'b mut process::Command;
        fn args::<Vec<&str>, &str>(&'b mut process::Command, Vec<&str>) -> &'b mut process::Command;
        fn as_std(&'b process::Command) -> &'b std::process::Command;
        fn as_std_mut(&'b mut process::Command) -> &'b mut std::process::Command;
        fn current_dir(&'b mut process::Command, &Path) -> &'b mut process::Command;
        fn env(&'b mut process::Command, &str, &str) -> &'b mut process::Command;
        fn env_clear(&'b mut process::Command) -> &'b mut process::Command;
        fn env_remove(&'b mut process::Command, &str) -> &'b mut process::Command;
        fn envs::<Vec<(&str, &str)>, &str, &str>(&'b mut process::Command, Vec<(&str, &str)>) -> &'b mut process::Command;
        fn get_kill_on_drop(&'b process::Command) -> bool;
        fn gid(&'b mut process::Command, u32) -> &'b mut process::Command;
        fn into_std(process::Command) -> std::process::Command;
        fn kill_on_drop(&'b mut process::Command, bool) -> &'b mut process::Command;
        fn new(&str) -> process::Command;
        async fn output(&'b mut process::Command) -> io::Result<std::process::Output>;
        unsafe fn pre_exec::<fn() -> io::Result<()>>(&'b mut process::Command, fn() -> io::Result<()>) -> &'b mut process::Command;
        fn process_group(&'b mut process::Command, i32) -> &'b mut process::Command;
        fn spawn(&'b mut process::Command) -> io::Result<process::Child>;
        async fn status(&'b mut process::Command) -> io::Result<ExitStatus>;
        fn stderr(&'b mut process::Command, Stdio) -> &'b mut process::Command;
        fn stdin(&'b mut process::Command, Stdio) -> &'b mut process::Command;
        fn stdout(&'b mut process::Command, Stdio) -> &'b mut process::Command;
        fn uid(&'b mut process::Command, u32) -> &'b mut process::Command;
    }
    calls! { runtime::Builder:
        fn build(&'b mut runtime::Builder) -> io::Result<runtime::Runtime>;
        fn build_local(&'b mut runtime::Builder, runtime::LocalOptions) -> io::Result<runtime::LocalRuntime>;
        fn enable_all(&'b mut runtime::Builder) -> &'b mut runtime::Builder;
        fn enable_io(&'b mut runtime::Builder) -> &'b mut runtime::Builder;
        fn enable_time(&'b mut runtime::Builder) -> &'b mut runtime::Builder;
        fn event_interval(&'b mut runtime::Builder, u32) -> &'b mut runtime::Builder;
        fn global_queue_interval(&'b mut runtime::Builder, u32) -> &'b mut runtime::Builder;
        fn max_blocking_threads(&'b mut runtime::Builder, usize) -> &'b mut runtime::Builder;
        fn max_io_events_per_busy_tick(&'b mut runtime::Builder, usize) -> &'b mut runtime::Builder;
        fn max_io_events_per_tick(&'b mut runtime::Builder, usize) -> &'b mut runtime::Builder;
        fn name(&'b mut runtime::Builder, &'c str) -> &'b mut runtime::Builder;
        fn new_current_thread() -> runtime::Builder;
        fn new_multi_thread() -> runtime::Builder;
        fn on_thread_park(&'b mut runtime::Builder, fn()) -> &'b mut runtime::Builder;
        fn on_thread_start(&'b mut runtime::Builder, fn()) -> &'b mut runtime::Builder;
        fn on_thread_stop(&'b mut runtime::Builder, fn()) -> &'b mut runtime::Builder;
        fn on_thread_unpark(&'b mut runtime::Builder, fn()) -> &'b mut runtime::Builder;
        fn start_paused(&'b mut runtime::Builder, bool) -> &'b mut runtime::Builder;
        fn thread_keep_alive(&'b mut runtime::Builder, Duration) -> &'b mut runtime::Builder;
        fn thread_name(&'b mut runtime::Builder, String) -> &'b mut runtime::Builder;
        fn thread_name_fn::<fn() -> String>(&'b mut runtime::Builder, fn() -> String) -> &'b mut runtime::Builder;
        fn thread_stack_size(&'b mut runtime::Builder, usize) -> &'b mut runtime::Builder;
        fn worker_threads(&'b mut runtime::Builder, usize) -> &'b mut runtime::Builder;
    }
    calls! { runtime::Handle:
        fn block_on::<Ready<u8>>(&'b runtime::Handle, Ready<u8>) -> u8;
        fn current() -> runtime::Handle;
        fn enter(&'b runtime::Handle) -> runtime::EnterGuard<'b>;
        fn id(&'b runtime::Handle) -> runtime::Id;
        fn metrics(&'b runtime::Handle) -> runtime::RuntimeMetrics;
        fn name(&'b runtime::Handle) -> Option<&'b str>;
        fn runtime_flavor(&'b runtime::Handle) -> runtime::RuntimeFlavor;
        fn spawn::<Ready<u8>>(&'b runtime::Handle, Ready<u8>) -> task::JoinHandle<u8>;
        fn spawn_blocking::<fn() -> u8, u8>(&'b runtime::Handle, fn() -> u8) -> task::JoinHandle<u8>;
        fn try_current() -> Result<runtime::Handle, runtime::TryCurrentError>;
    }
    calls! { runtime::Runtime:
        fn block_on::<Ready<u8>>(&'b runtime::Runtime, Ready<u8>) -> u8;
        fn enter(&'b runtime::Runtime) -> runtime::EnterGuard<'b>;
        fn handle(&'b runtime::Runtime) -> &'b runtime::Handle;
        fn metrics(&'b runtime::Runtime) -> runtime::RuntimeMetrics;
        fn new() -> io::Result<runtime::Runtime>;
        fn shutdown_background(runtime::Runtime);
        fn shutdown_timeout(runtime::Runtime, Duration);
        fn spawn::<Ready<u8>>(&'b runtime::Runtime, Ready<u8>) -> task::JoinHandle<u8>;
        fn spawn_blocking::<fn() -> u8, u8>(&'b runtime::Runtime, fn() -> u8) -> task::JoinHandle<u8>;
    }
    calls! { runtime::LocalRuntime:
        fn block_on::<Ready<u8>>(&'b runtime::LocalRuntime, Ready<u8>) -> u8;
        fn enter(&'b runtime::LocalRuntime) -> runtime::EnterGuard<'b>;
        fn handle(&'b runtime::LocalRuntime) -> &'b runtime::Handle;
        fn metrics(&'b runtime::LocalRuntime) -> runtime::RuntimeMetrics;
        fn new() -> io::Result<runtime::LocalRuntime>;
        fn shutdown_background(runtime::LocalRuntime);
        fn shutdown_timeout(runtime::LocalRuntime, Duration);
        fn spawn_local::<Ready<u8>>(&'b runtime::LocalRuntime, Ready<u8>) -> task::JoinHandle<u8>;
        fn spawn_blocking::<fn() -> u8, u8>(&'b runtime::LocalRuntime, fn() -> u8) -> task::JoinHandle<u8>;
    }
    calls! { runtime::RuntimeMetrics:
        fn global_queue_depth(&'b runtime::RuntimeMetrics) -> usize;
        fn num_alive_tasks(&'b runtime::RuntimeMetrics) -> usize;
        fn num_workers(&'b runtime::RuntimeMetrics) -> usize;
        fn worker_park_count(&'b runtime::RuntimeMetrics, usize) -> u64;
        fn worker_total_busy_duration(&'b runtime::RuntimeMetrics, usize) -> Duration;
        fn worker_park_unpark_count(&'b runtime::RuntimeMetrics, usize) -> u64;
    }
    calls! { runtime::TryCurrentError:
        fn is_missing_context(&'b runtime::TryCurrentError) -> bool;
        fn is_thread_local_destroyed(&'b runtime::TryCurrentError) -> bool;
    }
    calls! { signal::unix::Signal:
        fn poll_recv(&'b mut signal::unix::Signal, Cx<'c>) -> Poll<Option<()>>;
        async fn recv(&'b mut signal::unix::Signal) -> Option<()>;
    }
    calls! { signal::unix::SignalKind:
        fn alarm() -> signal::unix::SignalKind;
        fn as_raw_value(&'b signal::unix::SignalKind) -> std::os::raw::c_int;
        fn child() -> signal::unix::SignalKind;
        fn from_raw(std::os::raw::c_int) -> signal::unix::SignalKind;
        fn hangup() -> signal::unix::SignalKind;
        fn interrupt() -> signal::unix::SignalKind;
        fn io() -> signal::unix::SignalKind;
        fn pipe() -> signal::unix::SignalKind;
        fn quit() -> signal::unix::SignalKind;
        fn terminate() -> signal::unix::SignalKind;
        fn user_defined1() -> signal::unix::SignalKind;
        fn user_defined2() -> signal::unix::SignalKind;
        fn window_change() -> signal::unix::SignalKind;
    }
    calls! { task::AbortHandle:
        fn abort(&'b task::AbortHandle);
        fn id(&'b task::AbortHandle) -> task::Id;
        fn is_finished(&'b task::AbortHandle) -> bool;
    }
    calls! { task::JoinError:
        fn id(&'b task::JoinError) -> task::Id;
        fn into_panic(task::JoinError) -> Box<dyn std::any::Any + Send + 'static>;
        fn is_cancelled(&'b task::JoinError) -> bool;
        fn is_panic(&'b task::JoinError) -> bool;
        fn try_into_panic(task::JoinError) -> Result<Box<dyn std::any::Any + Send + 'static>, task::JoinError>;
    }
    calls! { task::JoinHandle<u8>:
        fn abort(&'b task::JoinHandle<u8>);
        fn abort_handle(&'b task::JoinHandle<u8>) -> task::AbortHandle;
        fn id(&'b task::JoinHandle<u8>) -> task::Id;
        fn is_finished(&'b task::JoinHandle<u8>) -> bool;
    }
    calls! { task::JoinSet<u8>:
        fn abort_all(&'b mut task::JoinSet<u8>);
        fn detach_all(&'b mut task::JoinSet<u8>);
        fn is_empty(&'b task::JoinSet<u8>) -> bool;
        async fn join_all(task::JoinSet<u8>) -> Vec<u8>;
        async fn join_next(&'b mut task::JoinSet<u8>) -> Option<Result<u8, task::JoinError>>;
        async fn join_next_with_id(&'b mut task::JoinSet<u8>) -> Option<Result<(task::Id, u8), task::JoinError>>;
        fn len(&'b task::JoinSet<u8>) -> usize;
        fn new() -> task::JoinSet<u8>;
        fn poll_join_next(&'b mut task::JoinSet<u8>, Cx<'c>) -> Poll<Option<Result<u8, task::JoinError>>>;
        fn poll_join_next_with_id(&'b mut task::JoinSet<u8>, Cx<'c>) -> Poll<Option<Result<(task::Id, u8), task::JoinError>>>;
        async fn shutdown(&'b mut task::JoinSet<u8>);
        fn spawn::<Ready<u8>>(&'b mut task::JoinSet<u8>, Ready<u8>) -> task::AbortHandle;
        fn spawn_blocking::<fn() -> u8>(&'b mut task::JoinSet<u8>, fn() -> u8) -> task::AbortHandle;
        fn spawn_blocking_on::<fn() -> u8>(&'b mut task::JoinSet<u8>, fn() -> u8, &'c runtime::Handle) -> task::AbortHandle;
        fn spawn_local::<Ready<u8>>(&'b mut task::JoinSet<u8>, Ready<u8>) -> task::AbortHandle;
        fn spawn_local_on::<Ready<u8>>(&'b mut task::JoinSet<u8>, Ready<u8>, &'c task::LocalSet) -> task::AbortHandle;
        fn spawn_on::<Ready<u8>>(&'b mut task::JoinSet<u8>, Ready<u8>, &'c runtime::Handle) -> task::AbortHandle;
        fn try_join_next(&'b mut task::JoinSet<u8>) -> Option<Result<u8, task::JoinError>>;
        fn try_join_next_with_id(&'b mut task::JoinSet<u8>) -> Option<Result<(task::Id, u8), task::JoinError>>;
    }
    calls! { task::LocalKey<u8>:
        fn get(&'static task::LocalKey<u8>) -> u8;
        fn scope::<Ready<u8>>(&'static task::LocalKey<u8>, u8, Ready<u8>) -> task::futures::TaskLocalFuture<u8, Ready<u8>>;
        fn sync_scope::<fn() -> u8, u8>(&'static task::LocalKey<u8>, u8, fn() -> u8) -> u8;
        fn try_get(&'static task::LocalKey<u8>) -> Result<u8, _>;
        fn try_with::<fn(&u8) -> u8, u8>(&'static task::LocalKey<u8>, fn(&u8) -> u8) -> Result<u8, _>;
        fn with::<fn(&u8) -> u8, u8>(&'static task::LocalKey<u8>, fn(&u8) -> u8) -> u8;
    }
    calls! { task::LocalSet:
        fn block_on::<Ready<u8>>(&'b task::LocalSet, &'c runtime::Runtime, Ready<u8>) -> u8;
        fn enter(&'b task::LocalSet) -> task::LocalEnterGuard;
        fn id(&'b task::LocalSet) -> runtime::Id;
        fn new() -> task::LocalSet;
        async fn run_until::<Ready<u8>>(&'b task::LocalSet, Ready<u8>) -> u8;
        fn spawn_local::<Ready<u8>>(&'b task::LocalSet, Ready<u8>) -> task::JoinHandle<u8>;
    }
    calls! { task::coop::RestoreOnPending:
        fn made_progress(&'b task::coop::RestoreOnPending);
    }
    calls! { task::futures::TaskLocalFuture<u8, Ready<u8>>:
        fn take_value(Pin<&'b mut task::futures::TaskLocalFuture<u8, Ready<u8>>>) -> Option<u8>;
    }
    calls! { time::Instant:
        fn checked_add(&'b time::Instant, Duration) -> Option<time::Instant>;
        fn checked_duration_since(&'b time::Instant, time::Instant) -> Option<Duration>;
        fn checked_sub(&'b time::Instant, Duration) -> Option<time::Instant>;
        fn duration_since(&'b time::Instant, time::Instant) -> Duration;
        fn elapsed(&'b time::Instant) -> Duration;
        fn from_std(std::time::Instant) -> time::Instant;
        fn into_std(time::Instant) -> std::time::Instant;
        fn now() -> time::Instant;
        fn saturating_duration_since(&'b time::Instant, time::Instant) -> Duration;
    }
    calls! { time::Interval:
        fn missed_tick_behavior(&'b time::Interval) -> time::MissedTickBehavior;
        fn period(&'b time::Interval) -> Duration;
        fn poll_tick(&'b mut time::Interval, Cx<'c>) -> Poll<time::Instant>;
        fn reset(&'b mut time::Interval);
        fn reset_after(&'b mut time::Interval, Duration);
        fn reset_at(&'b mut time::Interval, time::Instant);
        fn reset_immediately(&'b mut time::Interval);
        fn set_missed_tick_behavior(&'b mut time::Interval, time::MissedTickBehavior);
        async fn tick(&'b mut time::Interval) -> time::Instant;
    }
    calls! { time::Sleep:
        fn deadline(&'b time::Sleep) -> time::Instant;
        fn is_elapsed(&'b time::Sleep) -> bool;
        fn reset(Pin<&'b mut time::Sleep>, time::Instant);
    }
    calls! { time::Timeout<Ready<u8>>:
        fn get_mut(&'b mut time::Timeout<Ready<u8>>) -> &'b mut Ready<u8>;
        fn get_ref(&'b time::Timeout<Ready<u8>>) -> &'b Ready<u8>;
        fn into_inner(time::Timeout<Ready<u8>>) -> Ready<u8>;
    }
    functions! {
        async fn [fs::canonicalize](&Path) -> io::Result<PathBuf>;
        async fn [fs::copy](&Path, &Path) -> Result<u64, io::Error>;
        async fn [fs::create_dir](&Path) -> io::Result<()>;
        async fn [fs::create_dir_all](&Path) -> io::Result<()>;
        async fn [fs::hard_link](&Path, &Path) -> io::Result<()>;
        async fn [fs::metadata](&Path) -> io::Result<std::fs::Metadata>;
        async fn [fs::read](&Path) -> io::Result<Vec<u8>>;
        async fn [fs::read_dir](&Path) -> io::Result<fs::ReadDir>;
        async fn [fs::read_link](&Path) -> io::Result<PathBuf>;
        async fn [fs::read_to_string](&Path) -> io::Result<String>;
        async fn [fs::remove_dir](&Path) -> io::Result<()>;
        async fn [fs::remove_dir_all](&Path) -> io::Result<()>;
        async fn [fs::remove_file](&Path) -> io::Result<()>;
        async fn [fs::rename](&Path, &Path) -> io::Result<()>;
        async fn [fs::set_permissions](&Path, std::fs::Permissions) -> io::Result<()>;
        async fn [fs::symlink](&Path, &Path) -> io::Result<()>;
        async fn [fs::symlink_metadata](&Path) -> io::Result<std::fs::Metadata>;
        async fn [fs::try_exists](&Path) -> io::Result<bool>;
        async fn [fs::write](&Path, &[u8]) -> io::Result<()>;
        async fn [rt::io::copy::<rt::io::Empty, rt::io::Sink>](&'b mut rt::io::Empty, &'c mut rt::io::Sink) -> io::Result<u64>;
        async fn [rt::io::copy_bidirectional::<rt::io::Empty, rt::io::DuplexStream>](&'b mut rt::io::Empty, &'c mut rt::io::DuplexStream) -> io::Result<(u64, u64)>;
        async fn [rt::io::copy_bidirectional_with_sizes::<rt::io::Empty, rt::io::DuplexStream>](&'b mut rt::io::Empty, &'c mut rt::io::DuplexStream, usize, usize) -> io::Result<(u64, u64)>;
        async fn [rt::io::copy_buf::<rt::io::Empty, rt::io::Sink>](&'b mut rt::io::Empty, &'c mut rt::io::Sink) -> io::Result<u64>;
        fn [rt::io::duplex](usize) -> (rt::io::DuplexStream, rt::io::DuplexStream);
        fn [rt::io::empty]() -> rt::io::Empty;
        fn [rt::io::repeat](u8) -> rt::io::Repeat;
        fn [rt::io::simplex](usize) -> (rt::io::ReadHalf<rt::io::SimplexStream>, rt::io::WriteHalf<rt::io::SimplexStream>);
        fn [rt::io::sink]() -> rt::io::Sink;
        fn [rt::io::stderr]() -> rt::io::Stderr;
        fn [rt::io::stdin]() -> rt::io::Stdin;
        fn [rt::io::stdout]() -> rt::io::Stdout;
        async fn [signal::ctrl_c]() -> io::Result<()>;
        fn [signal::unix::signal](signal::unix::SignalKind) -> io::Result<signal::unix::Signal>;
        fn [runtime::worker_index]() -> Option<usize>;
        fn [rt::spawn::<Ready<u8>>](Ready<u8>) -> task::JoinHandle<u8>;
        fn [task::block_in_place::<fn() -> u8, u8>](fn() -> u8) -> u8;
        async fn [task::coop::consume_budget]();
        fn [task::coop::cooperative::<Ready<u8>>](Ready<u8>) -> task::coop::Coop<Ready<u8>>;
        fn [task::coop::has_budget_remaining]() -> bool;
        fn [task::coop::poll_proceed](Cx<'c>) -> Poll<task::coop::RestoreOnPending>;
        fn [task::coop::unconstrained::<u8>](u8) -> task::coop::Unconstrained<u8>;
        fn [task::id]() -> task::Id;
        fn [task::spawn::<Ready<u8>>](Ready<u8>) -> task::JoinHandle<u8>;
        fn [task::spawn_blocking::<fn() -> u8, u8>](fn() -> u8) -> task::JoinHandle<u8>;
        fn [task::spawn_local::<Ready<u8>>](Ready<u8>) -> task::JoinHandle<u8>;
        fn [task::try_id]() -> Option<task::Id>;
        async fn [task::yield_now]();
        async fn [time::advance](Duration);
        fn [time::interval](Duration) -> time::Interval;
        fn [time::interval_at](time::Instant, Duration) -> time::Interval;
        fn [time::pause]();
        fn [time::resume]();
        fn [time::sleep](Duration) -> time::Sleep;
        fn [time::sleep_until](time::Instant) -> time::Sleep;
        fn [time::timeout::<Ready<u8>>](Duration, Ready<u8>) -> time::Timeout<Ready<u8>>;
        fn [time::timeout_at::<Ready<u8>>](time::Instant, Ready<u8>) -> time::Timeout<Ready<u8>>;
    }
    implements! {
        fs::DirBuilder: Debug, Default, Send, Sync, Unpin;
        fs::DirEntry: Debug, Send, Sync, Unpin;
        fs::File: AsFd, AsRawFd, Debug, From<OwnedFd>, From<std::fs::File>, FromRawFd, Send, Sync, Unpin, rt::io::AsyncRead, rt::io::AsyncSeek, rt::io::AsyncWrite;
        fs::OpenOptions: Clone, Debug, Default, From<std::fs::OpenOptions>, Send, Sync, Unpin;
        fs::ReadDir: Debug, Send, Sync, Unpin;
        rt::io::DuplexStream: Debug, Send, Sync, Unpin, rt::io::AsyncRead, rt::io::AsyncWrite;
        rt::io::Empty: Debug, Send, Sync, Unpin, RefUnwindSafe, UnwindSafe, rt::io::AsyncBufRead, rt::io::AsyncRead, rt::io::AsyncSeek, rt::io::AsyncWrite;
        rt::io::Interest: BitOr, BitOrAssign, Clone, Copy, Debug, Eq, PartialEq, Send, Sync, Unpin;
        rt::io::Ready: BitAnd, BitOr, BitOrAssign, Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Send, Sub, Sync, Unpin;
        rt::io::Repeat: Debug, Send, Sync, Unpin, RefUnwindSafe, UnwindSafe, rt::io::AsyncRead;
        rt::io::SimplexStream: Debug, Send, Sync, Unpin, RefUnwindSafe, UnwindSafe, rt::io::AsyncRead, rt::io::AsyncWrite;
        rt::io::Sink: Debug, Send, Sync, Unpin, RefUnwindSafe, UnwindSafe, rt::io::AsyncWrite;
        rt::io::Stderr: AsFd, AsRawFd, Debug, Send, Sync, Unpin, rt::io::AsyncWrite;
        rt::io::Stdin: AsFd, AsRawFd, Debug, Send, Sync, Unpin, rt::io::AsyncRead;
        rt::io::Stdout: AsFd, AsRawFd, Debug, Send, Sync, Unpin, rt::io::AsyncWrite;
        process::Child: Debug, Send, Sync, Unpin;
        process::ChildStderr: AsFd, AsRawFd, Debug, Send, Sync, TryInto<std::process::Stdio>, Unpin, rt::io::AsyncRead;
        process::ChildStdin: AsFd, AsRawFd, Debug, Send, Sync, TryInto<std::process::Stdio>, Unpin, rt::io::AsyncWrite;
        process::ChildStdout: AsFd, AsRawFd, Debug, Send, Sync, TryInto<std::process::Stdio>, Unpin, rt::io::AsyncRead;
        process::Command: Debug, From<std::process::Command>, Send, Sync, Unpin;
        runtime::Builder: Debug, Send, Sync, Unpin;
        runtime::EnterGuard<'a>: Debug, Unpin;
        runtime::Handle: Clone, Debug, RefUnwindSafe, Send, Sync, Unpin, UnwindSafe;
        runtime::Id: Copy, Debug, Display, Eq, Hash, PartialEq, RefUnwindSafe, Send, Sync, Unpin, UnwindSafe;
        runtime::Runtime: Debug, RefUnwindSafe, Send, Sync, Unpin, UnwindSafe;
        runtime::RuntimeFlavor: Debug, Eq, PartialEq, Send, Sync, Unpin;
        runtime::RuntimeMetrics: Clone, Debug, RefUnwindSafe, Send, Sync, Unpin, UnwindSafe;
        runtime::TryCurrentError: Debug, Display, Error, Send, Sync, Unpin;
        signal::unix::Signal: Debug, Send, Sync, Unpin;
        signal::unix::SignalKind: Clone, Copy, Debug, Eq, From<i32>, From<signal::unix::SignalKind>, Hash, PartialEq, Send, Sync, Unpin;
        task::AbortHandle: Clone, Debug, Send, Sync, Unpin;
        task::Id: Clone, Copy, Debug, Display, Eq, Hash, Ord, PartialEq, PartialOrd, Send, Sync, Unpin;
        task::JoinError: Debug, Display, Error, From<task::JoinError>, Send, Sync, Unpin;
        task::JoinHandle<u8>: Debug, Future, Send, Sync, Unpin;
        task::JoinSet<u8>: FromIterator<Ready<u8>>, Extend<Ready<u8>>;
        task::JoinSet<u8>: Debug, Default, Send, Sync, Unpin;
        task::LocalEnterGuard: Debug, Unpin;
        task::LocalKey<u8>: Debug, Send, Sync, Unpin;
        task::LocalSet: Debug, Default, Future, Unpin;
        task::coop::Coop<Ready<u8>>: Debug, Future, Send, Sync, Unpin;
        task::coop::RestoreOnPending: Debug, Unpin;
        task::coop::Unconstrained<Ready<u8>>: Future, Send, Sync, Unpin;
        task::futures::TaskLocalFuture<u8, Ready<u8>>: Debug, Future, Send, Sync;
        time::Instant: Add<Duration>, AddAssign<Duration>, Clone, Copy, Debug, Eq, From<time::Instant>, From<std::time::Instant>, Hash, Ord, PartialEq, PartialOrd, Send, Sub, Sub<Duration>, SubAssign<Duration>, Sync, Unpin;
        time::Interval: Debug, Send, Sync, Unpin;
        time::MissedTickBehavior: Clone, Copy, Debug, Default, Eq, PartialEq, Send, Sync, Unpin;
        time::Sleep: Debug, Future, Send, Sync;
        time::Timeout<Ready<u8>>: Debug, Future, Send, Sync;
        time::error::Elapsed: Debug, Display, Eq, Error, From<time::error::Elapsed>, PartialEq, Send, Sync, Unpin;
    }
}
