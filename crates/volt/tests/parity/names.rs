// Included by `parity.rs` once with `rt` for Tokio and once with `rt` for Volt: what both have.

use rt::fs::{
    DirBuilder as _, DirEntry as _, File as _, FileTimes as _, OpenOptions as _, ReadDir as _,
    canonicalize as _, copy as _, create_dir as _, create_dir_all as _, hard_link as _,
    metadata as _, read as _, read_dir as _, read_link as _, read_to_string as _, remove_dir as _,
    remove_dir_all as _, remove_file as _, rename as _, set_permissions as _, symlink as _,
    symlink_metadata as _, try_exists as _, write as _,
};
use rt::io::unix::{
    AsyncFd as _, AsyncFdReadyGuard as _, AsyncFdReadyMutGuard as _, AsyncFdRegisterError as _,
    TryIoError as _,
};
use rt::io::{
    AsyncBufRead as _, AsyncBufReadExt as _, AsyncRead as _, AsyncReadExt as _, AsyncSeek as _,
    AsyncSeekExt as _, AsyncWrite as _, AsyncWriteExt as _, BufReader as _, BufStream as _,
    BufWriter as _, DuplexStream as _, Empty as _, Interest as _, Join as _, Lines as _,
    ReadBuf as _, ReadHalf as _, Ready as _, Repeat as _, SimplexStream as _, Sink as _,
    Split as _, Stderr as _, Stdin as _, Stdout as _, Take as _, WriteHalf as _, copy as _,
    copy_bidirectional as _, copy_bidirectional_with_sizes as _, copy_buf as _, duplex as _,
    empty as _, join as _, repeat as _, simplex as _, sink as _, split as _, stderr as _,
    stdin as _, stdout as _,
};
use rt::net::tcp::{
    OwnedReadHalf as _, OwnedWriteHalf as _, ReadHalf as _, ReuniteError as _, WriteHalf as _,
};
use rt::net::unix::pipe::{OpenOptions as _, Receiver as _, Sender as _, pipe as _};
use rt::net::unix::{
    OwnedReadHalf as _, OwnedWriteHalf as _, ReadHalf as _, ReuniteError as _, SocketAddr as _,
    UCred as _, WriteHalf as _, gid_t as _, pid_t as _, uid_t as _,
};
use rt::net::{
    TcpListener as _, TcpSocket as _, TcpStream as _, ToSocketAddrs as _, UdpSocket as _,
    UnixListener as _, UnixSocket as _, UnixStream as _, lookup_host as _,
};
use rt::process::{Child as _, ChildStderr as _, ChildStdin as _, ChildStdout as _, Command as _};
use rt::runtime::{
    Builder as _, EnterGuard as _, Handle as _, Runtime as _, RuntimeFlavor as _,
    RuntimeMetrics as _, TryCurrentError as _,
};
use rt::signal::ctrl_c as _;
use rt::signal::unix::{Signal as _, SignalKind as _, signal as _};
use rt::sync::broadcast::error::{RecvError as _, SendError as _, TryRecvError as _};
use rt::sync::broadcast::{Receiver as _, Sender as _, WeakSender as _, channel as _};
use rt::sync::futures::{Notified as _, OwnedNotified as _};
use rt::sync::mpsc::error::{
    SendError as _, SendTimeoutError as _, TryRecvError as _, TrySendError as _,
};
use rt::sync::mpsc::{
    OwnedPermit as _, Permit as _, PermitIterator as _, Receiver as _, Sender as _,
    UnboundedReceiver as _, UnboundedSender as _, WeakSender as _, WeakUnboundedSender as _,
    channel as _, unbounded_channel as _,
};
use rt::sync::oneshot::error::{RecvError as _, TryRecvError as _};
use rt::sync::oneshot::{Receiver as _, Sender as _, channel as _};
use rt::sync::watch::error::{RecvError as _, SendError as _};
use rt::sync::watch::{Receiver as _, Ref as _, Sender as _, channel as _};
use rt::sync::{
    AcquireError as _, Barrier as _, BarrierWaitResult as _, MappedMutexGuard as _, Mutex as _,
    MutexGuard as _, Notify as _, OnceCell as _, OwnedMappedMutexGuard as _, OwnedMutexGuard as _,
    OwnedRwLockMappedWriteGuard as _, OwnedRwLockReadGuard as _, OwnedRwLockWriteGuard as _,
    OwnedSemaphorePermit as _, RwLock as _, RwLockMappedWriteGuard as _, RwLockReadGuard as _,
    RwLockWriteGuard as _, Semaphore as _, SemaphorePermit as _, SetError as _, SetOnce as _,
    SetOnceError as _, TryAcquireError as _, TryLockError as _,
};
use rt::task::coop::{
    Coop as _, RestoreOnPending as _, Unconstrained as _, consume_budget as _, cooperative as _,
    has_budget_remaining as _, poll_proceed as _, unconstrained as _,
};
use rt::task::futures::TaskLocalFuture as _;
use rt::task::{
    AbortHandle as _, Id as _, JoinError as _, JoinHandle as _, JoinSet as _, LocalEnterGuard as _,
    LocalKey as _, LocalSet as _, block_in_place as _, id as _, spawn as _, spawn_blocking as _,
    spawn_local as _, try_id as _, yield_now as _,
};
use rt::time::error::Elapsed as _;
use rt::time::{
    Instant as _, Interval as _, MissedTickBehavior as _, Sleep as _, Timeout as _, advance as _,
    interval as _, interval_at as _, pause as _, resume as _, sleep as _, sleep_until as _,
    timeout as _, timeout_at as _,
};
use rt::{join as _, pin as _, select as _, spawn as _, task_local as _, try_join as _};

use std::future::Ready;
use std::os::fd::OwnedFd;

#[allow(clippy::too_many_lines, reason = "a list")]
pub(crate) fn others() {
    names!(rt::fs::DirBuilder: mode, new, recursive);
    names!(rt::fs::DirEntry: file_name, file_type, ino, metadata, path);
    names!(rt::fs::File: from_std, into_std, max_buf_size, metadata, options, set_len, set_max_buf_size, set_modified, set_permissions, set_times, sync_all, sync_data, try_clone, try_into_std);
    names!(rt::fs::FileTimes: new, set_accessed, set_modified);
    names!(rt::fs::OpenOptions: append, create, create_new, custom_flags, mode, new, read, truncate, write);
    names!(rt::fs::ReadDir: next_entry, poll_next_entry);
    names!(rt::io::Interest: add, is_error, is_priority, is_readable, is_writable, remove);
    names!(rt::io::Ready: is_empty, is_error, is_priority, is_read_closed, is_readable, is_writable, is_write_closed);
    names!(rt::io::unix::AsyncFd<OwnedFd>: get_mut, get_ref, into_inner, poll_read_ready, poll_read_ready_mut, poll_write_ready, poll_write_ready_mut, readable, readable_mut, ready, ready_mut, register, register_with_interest, writable, writable_mut);
    names!(rt::io::unix::AsyncFdReadyGuard<OwnedFd>: clear_ready, clear_ready_matching, get_inner, get_ref, ready, retain_ready);
    names!(rt::io::unix::AsyncFdReadyMutGuard<OwnedFd>: clear_ready, clear_ready_matching, get_inner, get_inner_mut, get_mut, get_ref, ready, retain_ready);
    names!(rt::io::unix::AsyncFdRegisterError<u8>: into_parts);
    names!(rt::process::Child: id, kill, start_kill, try_wait, wait, wait_with_output);
    names!(rt::process::ChildStderr: from_std, into_owned_fd);
    names!(rt::process::ChildStdin: from_std, into_owned_fd);
    names!(rt::process::ChildStdout: from_std, into_owned_fd);
    names!(rt::process::Command: as_std, as_std_mut, env_clear, gid, into_std, kill_on_drop, output, process_group, spawn, status, uid);
    names!(rt::runtime::Builder: build, enable_all, enable_io, enable_time, event_interval, global_queue_interval, max_blocking_threads, new_current_thread, new_multi_thread, start_paused, thread_keep_alive, thread_stack_size, worker_threads);
    names!(rt::runtime::Handle: current, enter, metrics, runtime_flavor, try_current);
    names!(rt::runtime::Runtime: enter, handle, metrics, new, shutdown_background, shutdown_timeout);
    names!(rt::runtime::RuntimeMetrics: global_queue_depth, num_alive_tasks, num_workers, worker_park_count);
    names!(rt::runtime::TryCurrentError: is_missing_context);
    names!(rt::signal::unix::Signal: poll_recv, recv);
    names!(rt::signal::unix::SignalKind: alarm, as_raw_value, child, from_raw, hangup, interrupt, io, pipe, quit, terminate, user_defined1, user_defined2, window_change);
    names!(rt::task::AbortHandle: abort, id, is_finished);
    names!(rt::task::JoinError: id, into_panic, is_cancelled, is_panic, try_into_panic);
    names!(rt::task::JoinHandle<u8>: abort, abort_handle, id, is_finished);
    names!(rt::task::JoinSet<u8>: abort_all, detach_all, is_empty, join_all, join_next, join_next_with_id, len, new, poll_join_next, poll_join_next_with_id, shutdown, try_join_next, try_join_next_with_id);
    names!(rt::task::LocalKey<u8>: get, try_get);
    names!(rt::task::LocalSet: enter, new);
    names!(rt::task::coop::RestoreOnPending: made_progress);
    names!(rt::task::futures::TaskLocalFuture<u8, u8>: take_value);
    names!(rt::time::Instant: checked_add, checked_duration_since, checked_sub, duration_since, elapsed, from_std, into_std, now, saturating_duration_since);
    names!(rt::time::Interval: missed_tick_behavior, period, poll_tick, reset, reset_after, reset_at, reset_immediately, set_missed_tick_behavior, tick);
    names!(rt::time::Sleep: deadline, is_elapsed, reset);
    names!(rt::time::Timeout<Ready<()>>: get_mut, get_ref, into_inner);
}

#[allow(clippy::too_many_lines, reason = "a list")]
pub(crate) fn net() {
    names!(rt::net::TcpListener: accept, from_std, into_std, local_addr, poll_accept, set_ttl, ttl);
    names!(rt::net::TcpSocket: bind, bind_device, connect, device, from_std_stream, keepalive, linger, listen, local_addr, new_v4, new_v6, nodelay, recv_buffer_size, reuseaddr, reuseport, send_buffer_size, set_keepalive, set_nodelay, set_recv_buffer_size, set_reuseaddr, set_reuseport, set_send_buffer_size, set_tclass_v6, set_tos_v4, set_zero_linger, take_error, tclass_v6, tos_v4);
    names!(rt::net::TcpStream: from_std, into_split, into_std, linger, local_addr, nodelay, peek, peer_addr, poll_peek, poll_read_ready, poll_write_ready, quickack, readable, ready, set_nodelay, set_quickack, set_ttl, set_zero_linger, split, take_error, try_read, try_read_vectored, try_write, try_write_vectored, ttl, writable);
    names!(rt::net::UdpSocket: bind_device, broadcast, device, from_std, into_std, join_multicast_v4, join_multicast_v6, leave_multicast_v4, leave_multicast_v6, local_addr, multicast_loop_v4, multicast_loop_v6, multicast_ttl_v4, peek, peek_from, peek_sender, peer_addr, poll_peek, poll_peek_from, poll_peek_sender, poll_recv, poll_recv_from, poll_recv_ready, poll_send, poll_send_ready, poll_send_to, readable, ready, recv, recv_from, send, set_broadcast, set_multicast_loop_v4, set_multicast_loop_v6, set_multicast_ttl_v4, set_tclass_v6, set_tos_v4, set_ttl, take_error, tclass_v6, tos_v4, try_peek, try_peek_from, try_peek_sender, try_recv, try_recv_from, try_send, try_send_to, ttl, writable);
    names!(rt::net::UnixListener: accept, bind_addr, from_std, into_std, local_addr, poll_accept, take_error);
    names!(rt::net::UnixSocket: datagram, listen, new_datagram, new_stream);
    names!(rt::net::UnixStream: connect_addr, from_std, into_split, into_std, local_addr, pair, peer_addr, peer_cred, poll_read_ready, poll_write_ready, readable, ready, split, take_error, try_read, try_read_vectored, try_write, try_write_vectored, writable);
    names!(rt::net::tcp::OwnedReadHalf: local_addr, peek, peer_addr, poll_peek, readable, ready, reunite, try_read, try_read_vectored);
    names!(rt::net::tcp::OwnedWriteHalf: forget, local_addr, peer_addr, ready, reunite, try_write, try_write_vectored, writable);
    names!(rt::net::tcp::ReadHalf: local_addr, peek, peer_addr, poll_peek, readable, ready, try_read, try_read_vectored);
    names!(rt::net::tcp::WriteHalf: local_addr, peer_addr, ready, try_write, try_write_vectored, writable);
    names!(rt::net::unix::OwnedReadHalf: local_addr, peer_addr, readable, ready, reunite, try_read, try_read_vectored);
    names!(rt::net::unix::OwnedWriteHalf: forget, local_addr, peer_addr, ready, reunite, try_write, try_write_vectored, writable);
    names!(rt::net::unix::ReadHalf: local_addr, peer_addr, readable, ready, try_read, try_read_vectored);
    names!(rt::net::unix::UCred: gid, pid, uid);
    names!(rt::net::unix::WriteHalf: local_addr, peer_addr, ready, try_write, try_write_vectored, writable);
    names!(rt::net::unix::pipe::OpenOptions: new, read_write, unchecked);
    names!(rt::net::unix::pipe::Receiver: from_file, from_file_unchecked, from_owned_fd, from_owned_fd_unchecked, into_blocking_fd, into_nonblocking_fd, poll_read_ready, readable, ready, try_read, try_read_vectored);
    names!(rt::net::unix::pipe::Sender: from_file, from_file_unchecked, from_owned_fd, from_owned_fd_unchecked, into_blocking_fd, into_nonblocking_fd, poll_write_ready, ready, try_write, try_write_vectored, writable);
    names!(rt::net::UnixDatagram: from_std, into_std, local_addr, pair, peer_addr, poll_recv, poll_recv_from, poll_recv_ready, poll_send, poll_send_ready, readable, ready, recv, recv_from, send, shutdown, take_error, try_recv, try_recv_from, try_send, unbound, writable);
}

#[allow(clippy::too_many_lines, reason = "a list")]
pub(crate) fn sync() {
    names!(rt::sync::Barrier: new, wait);
    names!(rt::sync::BarrierWaitResult: is_leader);
    names!(rt::sync::Mutex<u8>: blocking_lock, blocking_lock_owned, const_new, get_mut, into_inner, lock, lock_owned, new, try_lock, try_lock_owned);
    names!(rt::sync::MutexGuard<u8>: mutex);
    names!(rt::sync::Notify: const_new, new, notified, notified_owned, notify_last, notify_one, notify_waiters);
    names!(rt::sync::OnceCell<u8>: const_new, const_new_with, get, get_mut, initialized, into_inner, new, new_with, set, take);
    names!(rt::sync::OwnedMutexGuard<u8>: mutex);
    names!(rt::sync::OwnedRwLockMappedWriteGuard<u8, u8>: rwlock);
    names!(rt::sync::OwnedRwLockReadGuard<u8, u8>: rwlock);
    names!(rt::sync::OwnedRwLockWriteGuard<u8>: downgrade, into_mapped, rwlock);
    names!(rt::sync::OwnedSemaphorePermit: forget, merge, num_permits, semaphore, split);
    names!(rt::sync::RwLock<u8>: blocking_read, blocking_write, const_new, const_with_max_readers, get_mut, into_inner, new, read, read_owned, try_read, try_read_owned, try_write, try_write_owned, with_max_readers, write, write_owned);
    names!(rt::sync::RwLockWriteGuard<u8>: downgrade, into_mapped);
    names!(rt::sync::Semaphore: acquire, acquire_many, acquire_many_owned, acquire_owned, add_permits, available_permits, blocking_acquire, blocking_acquire_many, blocking_acquire_many_owned, blocking_acquire_owned, close, const_new, forget_permits, is_closed, new, try_acquire, try_acquire_many, try_acquire_many_owned, try_acquire_owned);
    names!(rt::sync::SemaphorePermit: forget, merge, num_permits, semaphore, split);
    names!(rt::sync::SetError<u8>: is_already_init_err, is_initializing_err);
    names!(rt::sync::SetOnce<u8>: const_new, const_new_with, get, initialized, into_inner, new, new_with, set, wait);
    names!(rt::sync::broadcast::Receiver<u8>: blocking_recv, is_closed, is_empty, len, recv, resubscribe, same_channel, sender_strong_count, sender_weak_count, try_recv);
    names!(rt::sync::broadcast::Sender<u8>: closed, downgrade, is_empty, len, new, receiver_count, same_channel, send, strong_count, subscribe, weak_count);
    names!(rt::sync::broadcast::WeakSender<u8>: strong_count, upgrade, weak_count);
    names!(rt::sync::futures::Notified: enable);
    names!(rt::sync::futures::OwnedNotified: enable);
    names!(rt::sync::mpsc::OwnedPermit<u8>: release, same_channel, same_channel_as_sender, send);
    names!(rt::sync::mpsc::Permit<u8>: send);
    names!(rt::sync::mpsc::Receiver<u8>: blocking_recv, blocking_recv_many, capacity, close, is_closed, is_empty, len, max_capacity, poll_recv, poll_recv_many, recv, recv_many, sender_strong_count, try_recv);
    names!(rt::sync::mpsc::Sender<u8>: blocking_send, capacity, closed, downgrade, is_closed, max_capacity, reserve, reserve_many, reserve_owned, same_channel, send, strong_count, try_reserve, try_reserve_many, try_reserve_owned, try_send, weak_count);
    names!(rt::sync::mpsc::UnboundedReceiver<u8>: blocking_recv, blocking_recv_many, close, is_closed, is_empty, len, poll_recv, poll_recv_many, recv, recv_many, sender_strong_count, try_recv);
    names!(rt::sync::mpsc::UnboundedSender<u8>: closed, downgrade, is_closed, same_channel, send, strong_count, weak_count);
    names!(rt::sync::mpsc::WeakSender<u8>: strong_count, upgrade, weak_count);
    names!(rt::sync::mpsc::WeakUnboundedSender<u8>: strong_count, upgrade, weak_count);
    names!(rt::sync::mpsc::error::SendTimeoutError<u8>: into_inner);
    names!(rt::sync::mpsc::error::TrySendError<u8>: into_inner);
    names!(rt::sync::oneshot::Receiver<u8>: blocking_recv, close, is_empty, is_terminated, try_recv);
    names!(rt::sync::oneshot::Sender<u8>: closed, is_closed, poll_closed, send);
    names!(rt::sync::watch::Receiver<u8>: borrow, borrow_and_update, changed, has_changed, is_closed, mark_changed, mark_unchanged, same_channel);
    names!(rt::sync::watch::Ref<u8>: has_changed);
    names!(rt::sync::watch::Sender<u8>: borrow, closed, is_closed, new, receiver_count, same_channel, send, send_replace, sender_count, subscribe);
}
