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
    Builder as _, EnterGuard as _, Handle as _, Id as _, LocalOptions as _, LocalRuntime as _, Runtime as _,
    RuntimeFlavor as _, RuntimeMetrics as _, TryCurrentError as _, is_rt_shutdown_err as _, worker_index as _,
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
