// Included by `parity.rs` once with `rt` for Tokio and once with `rt` for Volt: locks and channels.
//
// What is not in Tokio's signature in the same way is in `docs/design/tokio-api.md`.

use std::error::Error;
use std::fmt::{Debug, Display};
use std::future::Ready;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rt::sync;

use super::super::{Cx, any};

/// `'a` is a lifetime of the type, `'b` the one of `self`, `'c` that of other arguments.
#[allow(clippy::too_many_lines, reason = "a list")]
pub(crate) async fn sync<'a: 'b + 'c, 'b: 'c, 'c>() {
    calls! { sync::Barrier:
        fn new(usize) -> sync::Barrier;
        async fn wait(&'b sync::Barrier) -> sync::BarrierWaitResult;
    }
    calls! { sync::BarrierWaitResult:
        fn is_leader(&'b sync::BarrierWaitResult) -> bool;
    }
    calls! { sync::MappedMutexGuard<'a, u8>:
        fn map::<u8, fn(&mut u8) -> &mut u8>(sync::MappedMutexGuard<'a, u8>, fn(&mut u8) -> &mut u8) -> sync::MappedMutexGuard<'a, u8>;
        fn try_map::<u8, fn(&mut u8) -> Option<&mut u8>>(sync::MappedMutexGuard<'a, u8>, fn(&mut u8) -> Option<&mut u8>) -> Result<sync::MappedMutexGuard<'a, u8>, sync::MappedMutexGuard<'a, u8>>;
    }
    calls! { sync::Mutex<u8>:
        fn blocking_lock(&'b sync::Mutex<u8>) -> sync::MutexGuard<'b, u8>;
        fn blocking_lock_owned(Arc<sync::Mutex<u8>>) -> sync::OwnedMutexGuard<u8>;
        fn const_new(u8) -> sync::Mutex<u8>;
        fn get_mut(&'b mut sync::Mutex<u8>) -> &'b mut u8;
        fn into_inner(sync::Mutex<u8>) -> u8;
        async fn lock(&'b sync::Mutex<u8>) -> sync::MutexGuard<'b, u8>;
        async fn lock_owned(Arc<sync::Mutex<u8>>) -> sync::OwnedMutexGuard<u8>;
        fn new(u8) -> sync::Mutex<u8>;
        fn try_lock(&'b sync::Mutex<u8>) -> Result<sync::MutexGuard<'b, u8>, sync::TryLockError>;
        fn try_lock_owned(Arc<sync::Mutex<u8>>) -> Result<sync::OwnedMutexGuard<u8>, sync::TryLockError>;
    }
    calls! { sync::MutexGuard<'a, u8>:
        fn map::<u8, fn(&mut u8) -> &mut u8>(sync::MutexGuard<'a, u8>, fn(&mut u8) -> &mut u8) -> sync::MappedMutexGuard<'a, u8>;
        fn mutex(&'c sync::MutexGuard<'a, u8>) -> &'a sync::Mutex<u8>;
        fn try_map::<u8, fn(&mut u8) -> Option<&mut u8>>(sync::MutexGuard<'a, u8>, fn(&mut u8) -> Option<&mut u8>) -> Result<sync::MappedMutexGuard<'a, u8>, sync::MutexGuard<'a, u8>>;
    }
    calls! { sync::Notify:
        fn const_new() -> sync::Notify;
        fn new() -> sync::Notify;
        fn notified(&'b sync::Notify) -> sync::futures::Notified<'b>;
        fn notified_owned(Arc<sync::Notify>) -> sync::futures::OwnedNotified;
        fn notify_last(&'b sync::Notify);
        fn notify_one(&'b sync::Notify);
        fn notify_waiters(&'b sync::Notify);
    }
    calls! { sync::OnceCell<u8>:
        fn const_new() -> sync::OnceCell<u8>;
        fn const_new_with(u8) -> sync::OnceCell<u8>;
        fn get(&'b sync::OnceCell<u8>) -> Option<&'b u8>;
        fn get_mut(&'b mut sync::OnceCell<u8>) -> Option<&'b mut u8>;
        async fn get_or_init::<fn() -> Ready<u8>, Ready<u8>>(&'b sync::OnceCell<u8>, fn() -> Ready<u8>) -> &'b u8;
        async fn get_or_try_init::<u8, fn() -> Ready<Result<u8, u8>>, Ready<Result<u8, u8>>>(&'b sync::OnceCell<u8>, fn() -> Ready<Result<u8, u8>>) -> Result<&'b u8, u8>;
        fn initialized(&'b sync::OnceCell<u8>) -> bool;
        fn into_inner(sync::OnceCell<u8>) -> Option<u8>;
        fn new() -> sync::OnceCell<u8>;
        fn new_with(Option<u8>) -> sync::OnceCell<u8>;
        fn set(&'b sync::OnceCell<u8>, u8) -> Result<(), sync::SetError<u8>>;
        fn take(&'b mut sync::OnceCell<u8>) -> Option<u8>;
    }
    calls! { sync::OwnedMappedMutexGuard<u8, u8>:
        fn map::<u8, fn(&mut u8) -> &mut u8>(sync::OwnedMappedMutexGuard<u8, u8>, fn(&mut u8) -> &mut u8) -> sync::OwnedMappedMutexGuard<u8, u8>;
        fn try_map::<u8, fn(&mut u8) -> Option<&mut u8>>(sync::OwnedMappedMutexGuard<u8, u8>, fn(&mut u8) -> Option<&mut u8>) -> Result<sync::OwnedMappedMutexGuard<u8, u8>, sync::OwnedMappedMutexGuard<u8, u8>>;
    }
    calls! { sync::OwnedMutexGuard<u8>:
        fn map::<u8, fn(&mut u8) -> &mut u8>(sync::OwnedMutexGuard<u8>, fn(&mut u8) -> &mut u8) -> sync::OwnedMappedMutexGuard<u8, u8>;
        fn mutex(&'c sync::OwnedMutexGuard<u8>) -> &'c Arc<sync::Mutex<u8>>;
        fn try_map::<u8, fn(&mut u8) -> Option<&mut u8>>(sync::OwnedMutexGuard<u8>, fn(&mut u8) -> Option<&mut u8>) -> Result<sync::OwnedMappedMutexGuard<u8, u8>, sync::OwnedMutexGuard<u8>>;
    }
    calls! { sync::OwnedRwLockMappedWriteGuard<u8, u8>:
        fn map(sync::OwnedRwLockMappedWriteGuard<u8, u8>, fn(&mut u8) -> &mut u8) -> sync::OwnedRwLockMappedWriteGuard<u8, u8>;
        fn rwlock(&'c sync::OwnedRwLockMappedWriteGuard<u8, u8>) -> &'c Arc<sync::RwLock<u8>>;
        fn try_map(sync::OwnedRwLockMappedWriteGuard<u8, u8>, fn(&mut u8) -> Option<&mut u8>) -> Result<sync::OwnedRwLockMappedWriteGuard<u8, u8>, sync::OwnedRwLockMappedWriteGuard<u8, u8>>;
    }
    calls! { sync::OwnedRwLockReadGuard<u8, u8>:
        fn map(sync::OwnedRwLockReadGuard<u8, u8>, fn(&u8) -> &u8) -> sync::OwnedRwLockReadGuard<u8, u8>;
        fn rwlock(&'c sync::OwnedRwLockReadGuard<u8, u8>) -> &'c Arc<sync::RwLock<u8>>;
        fn try_map(sync::OwnedRwLockReadGuard<u8, u8>, fn(&u8) -> Option<&u8>) -> Result<sync::OwnedRwLockReadGuard<u8, u8>, sync::OwnedRwLockReadGuard<u8, u8>>;
    }
    calls! { sync::OwnedRwLockWriteGuard<u8>:
        fn downgrade(sync::OwnedRwLockWriteGuard<u8>) -> sync::OwnedRwLockReadGuard<u8>;
        fn downgrade_map(sync::OwnedRwLockWriteGuard<u8>, fn(&u8) -> &u8) -> sync::OwnedRwLockReadGuard<u8, u8>;
        fn into_mapped(sync::OwnedRwLockWriteGuard<u8>) -> sync::OwnedRwLockMappedWriteGuard<u8>;
        fn map(sync::OwnedRwLockWriteGuard<u8>, fn(&mut u8) -> &mut u8) -> sync::OwnedRwLockMappedWriteGuard<u8, u8>;
        fn rwlock(&'c sync::OwnedRwLockWriteGuard<u8>) -> &'c Arc<sync::RwLock<u8>>;
        fn try_downgrade_map(sync::OwnedRwLockWriteGuard<u8>, fn(&u8) -> Option<&u8>) -> Result<sync::OwnedRwLockReadGuard<u8, u8>, sync::OwnedRwLockWriteGuard<u8>>;
        fn try_map(sync::OwnedRwLockWriteGuard<u8>, fn(&mut u8) -> Option<&mut u8>) -> Result<sync::OwnedRwLockMappedWriteGuard<u8, u8>, sync::OwnedRwLockWriteGuard<u8>>;
    }
    calls! { sync::OwnedSemaphorePermit:
        fn forget(sync::OwnedSemaphorePermit);
        fn merge(&'b mut sync::OwnedSemaphorePermit, sync::OwnedSemaphorePermit);
        fn num_permits(&'b sync::OwnedSemaphorePermit) -> usize;
        fn semaphore(&'b sync::OwnedSemaphorePermit) -> &'b Arc<sync::Semaphore>;
        fn split(&'b mut sync::OwnedSemaphorePermit, usize) -> Option<sync::OwnedSemaphorePermit>;
    }
    calls! { sync::RwLock<u8>:
        fn blocking_read(&'b sync::RwLock<u8>) -> sync::RwLockReadGuard<'b, u8>;
        fn blocking_write(&'b sync::RwLock<u8>) -> sync::RwLockWriteGuard<'b, u8>;
        fn const_new(u8) -> sync::RwLock<u8>;
        fn const_with_max_readers(u8, u32) -> sync::RwLock<u8>;
        fn get_mut(&'b mut sync::RwLock<u8>) -> &'b mut u8;
        fn into_inner(sync::RwLock<u8>) -> u8;
        fn new(u8) -> sync::RwLock<u8>;
        async fn read(&'b sync::RwLock<u8>) -> sync::RwLockReadGuard<'b, u8>;
        async fn read_owned(Arc<sync::RwLock<u8>>) -> sync::OwnedRwLockReadGuard<u8>;
        fn try_read(&'b sync::RwLock<u8>) -> Result<sync::RwLockReadGuard<'b, u8>, sync::TryLockError>;
        fn try_read_owned(Arc<sync::RwLock<u8>>) -> Result<sync::OwnedRwLockReadGuard<u8>, sync::TryLockError>;
        fn try_write(&'b sync::RwLock<u8>) -> Result<sync::RwLockWriteGuard<'b, u8>, sync::TryLockError>;
        fn try_write_owned(Arc<sync::RwLock<u8>>) -> Result<sync::OwnedRwLockWriteGuard<u8>, sync::TryLockError>;
        fn with_max_readers(u8, u32) -> sync::RwLock<u8>;
        async fn write(&'b sync::RwLock<u8>) -> sync::RwLockWriteGuard<'b, u8>;
        async fn write_owned(Arc<sync::RwLock<u8>>) -> sync::OwnedRwLockWriteGuard<u8>;
    }
    calls! { sync::RwLockMappedWriteGuard<'a, u8>:
        fn map(sync::RwLockMappedWriteGuard<'a, u8>, fn(&mut u8) -> &mut u8) -> sync::RwLockMappedWriteGuard<'a, u8>;
        fn try_map(sync::RwLockMappedWriteGuard<'a, u8>, fn(&mut u8) -> Option<&mut u8>) -> Result<sync::RwLockMappedWriteGuard<'a, u8>, sync::RwLockMappedWriteGuard<'a, u8>>;
    }
    calls! { sync::RwLockReadGuard<'a, u8>:
        fn map(sync::RwLockReadGuard<'a, u8>, fn(&u8) -> &u8) -> sync::RwLockReadGuard<'a, u8>;
        fn try_map(sync::RwLockReadGuard<'a, u8>, fn(&u8) -> Option<&u8>) -> Result<sync::RwLockReadGuard<'a, u8>, sync::RwLockReadGuard<'a, u8>>;
    }
    calls! { sync::RwLockWriteGuard<'a, u8>:
        fn downgrade(sync::RwLockWriteGuard<'a, u8>) -> sync::RwLockReadGuard<'a, u8>;
        fn downgrade_map(sync::RwLockWriteGuard<'a, u8>, fn(&u8) -> &u8) -> sync::RwLockReadGuard<'a, u8>;
        fn into_mapped(sync::RwLockWriteGuard<'a, u8>) -> sync::RwLockMappedWriteGuard<'a, u8>;
        fn map(sync::RwLockWriteGuard<'a, u8>, fn(&mut u8) -> &mut u8) -> sync::RwLockMappedWriteGuard<'a, u8>;
        fn try_downgrade_map(sync::RwLockWriteGuard<'a, u8>, fn(&u8) -> Option<&u8>) -> Result<sync::RwLockReadGuard<'a, u8>, sync::RwLockWriteGuard<'a, u8>>;
        fn try_map(sync::RwLockWriteGuard<'a, u8>, fn(&mut u8) -> Option<&mut u8>) -> Result<sync::RwLockMappedWriteGuard<'a, u8>, sync::RwLockWriteGuard<'a, u8>>;
    }
    calls! { sync::Semaphore:
        async fn acquire(&'b sync::Semaphore) -> Result<sync::SemaphorePermit<'b>, sync::AcquireError>;
        async fn acquire_many(&'b sync::Semaphore, u32) -> Result<sync::SemaphorePermit<'b>, sync::AcquireError>;
        async fn acquire_many_owned(Arc<sync::Semaphore>, u32) -> Result<sync::OwnedSemaphorePermit, sync::AcquireError>;
        async fn acquire_owned(Arc<sync::Semaphore>) -> Result<sync::OwnedSemaphorePermit, sync::AcquireError>;
        fn add_permits(&'b sync::Semaphore, usize);
        fn available_permits(&'b sync::Semaphore) -> usize;
        fn blocking_acquire(&'b sync::Semaphore) -> Result<sync::SemaphorePermit<'b>, sync::AcquireError>;
        fn blocking_acquire_many(&'b sync::Semaphore, u32) -> Result<sync::SemaphorePermit<'b>, sync::AcquireError>;
        fn blocking_acquire_many_owned(Arc<sync::Semaphore>, u32) -> Result<sync::OwnedSemaphorePermit, sync::AcquireError>;
        fn blocking_acquire_owned(Arc<sync::Semaphore>) -> Result<sync::OwnedSemaphorePermit, sync::AcquireError>;
        fn close(&'b sync::Semaphore);
        fn const_new(usize) -> sync::Semaphore;
        fn forget_permits(&'b sync::Semaphore, usize) -> usize;
        fn is_closed(&'b sync::Semaphore) -> bool;
        fn new(usize) -> sync::Semaphore;
        fn try_acquire(&'b sync::Semaphore) -> Result<sync::SemaphorePermit<'b>, sync::TryAcquireError>;
        fn try_acquire_many(&'b sync::Semaphore, u32) -> Result<sync::SemaphorePermit<'b>, sync::TryAcquireError>;
        fn try_acquire_many_owned(Arc<sync::Semaphore>, u32) -> Result<sync::OwnedSemaphorePermit, sync::TryAcquireError>;
        fn try_acquire_owned(Arc<sync::Semaphore>) -> Result<sync::OwnedSemaphorePermit, sync::TryAcquireError>;
    }
    calls! { sync::SemaphorePermit<'a>:
        fn forget(sync::SemaphorePermit<'a>);
        fn merge(&'b mut sync::SemaphorePermit<'a>, sync::SemaphorePermit<'a>);
        fn num_permits(&'b sync::SemaphorePermit<'a>) -> usize;
        fn semaphore(&'b sync::SemaphorePermit<'a>) -> &'b sync::Semaphore;
        fn split(&'b mut sync::SemaphorePermit<'a>, usize) -> Option<sync::SemaphorePermit<'a>>;
    }
    calls! { sync::SetError<u8>:
        fn is_already_init_err(&'b sync::SetError<u8>) -> bool;
        fn is_initializing_err(&'b sync::SetError<u8>) -> bool;
    }
    calls! { sync::SetOnce<u8>:
        fn const_new() -> sync::SetOnce<u8>;
        fn const_new_with(u8) -> sync::SetOnce<u8>;
        fn get(&'b sync::SetOnce<u8>) -> Option<&'b u8>;
        fn initialized(&'b sync::SetOnce<u8>) -> bool;
        fn into_inner(sync::SetOnce<u8>) -> Option<u8>;
        fn new() -> sync::SetOnce<u8>;
        fn new_with(Option<u8>) -> sync::SetOnce<u8>;
        fn set(&'b sync::SetOnce<u8>, u8) -> Result<(), sync::SetOnceError<u8>>;
        async fn wait(&'b sync::SetOnce<u8>) -> &'b u8;
    }
    calls! { sync::broadcast::Receiver<u8>:
        fn blocking_recv(&'b mut sync::broadcast::Receiver<u8>) -> Result<u8, sync::broadcast::error::RecvError>;
        fn is_closed(&'b sync::broadcast::Receiver<u8>) -> bool;
        fn is_empty(&'b sync::broadcast::Receiver<u8>) -> bool;
        fn len(&'b sync::broadcast::Receiver<u8>) -> usize;
        async fn recv(&'b mut sync::broadcast::Receiver<u8>) -> Result<u8, sync::broadcast::error::RecvError>;
        fn resubscribe(&'b sync::broadcast::Receiver<u8>) -> sync::broadcast::Receiver<u8>;
        fn same_channel(&'b sync::broadcast::Receiver<u8>, &'c sync::broadcast::Receiver<u8>) -> bool;
        fn sender_strong_count(&'b sync::broadcast::Receiver<u8>) -> usize;
        fn sender_weak_count(&'b sync::broadcast::Receiver<u8>) -> usize;
        fn try_recv(&'b mut sync::broadcast::Receiver<u8>) -> Result<u8, sync::broadcast::error::TryRecvError>;
    }
    calls! { sync::broadcast::Sender<u8>:
        async fn closed(&'b sync::broadcast::Sender<u8>);
        fn downgrade(&'b sync::broadcast::Sender<u8>) -> sync::broadcast::WeakSender<u8>;
        fn is_empty(&'b sync::broadcast::Sender<u8>) -> bool;
        fn len(&'b sync::broadcast::Sender<u8>) -> usize;
        fn new(usize) -> sync::broadcast::Sender<u8>;
        fn receiver_count(&'b sync::broadcast::Sender<u8>) -> usize;
        fn same_channel(&'b sync::broadcast::Sender<u8>, &'c sync::broadcast::Sender<u8>) -> bool;
        fn send(&'b sync::broadcast::Sender<u8>, u8) -> Result<usize, sync::broadcast::error::SendError<u8>>;
        fn strong_count(&'b sync::broadcast::Sender<u8>) -> usize;
        fn subscribe(&'b sync::broadcast::Sender<u8>) -> sync::broadcast::Receiver<u8>;
        fn weak_count(&'b sync::broadcast::Sender<u8>) -> usize;
    }
    calls! { sync::broadcast::WeakSender<u8>:
        fn strong_count(&'b sync::broadcast::WeakSender<u8>) -> usize;
        fn upgrade(&'b sync::broadcast::WeakSender<u8>) -> Option<sync::broadcast::Sender<u8>>;
        fn weak_count(&'b sync::broadcast::WeakSender<u8>) -> usize;
    }
    calls! { sync::futures::Notified<'a>:
        fn enable(Pin<&'b mut sync::futures::Notified<'a>>) -> bool;
    }
    calls! { sync::futures::OwnedNotified:
        fn enable(Pin<&'b mut sync::futures::OwnedNotified>) -> bool;
    }
    calls! { sync::mpsc::OwnedPermit<u8>:
        fn release(sync::mpsc::OwnedPermit<u8>) -> sync::mpsc::Sender<u8>;
        fn same_channel(&'b sync::mpsc::OwnedPermit<u8>, &'c sync::mpsc::OwnedPermit<u8>) -> bool;
        fn same_channel_as_sender(&'b sync::mpsc::OwnedPermit<u8>, &'c sync::mpsc::Sender<u8>) -> bool;
        fn send(sync::mpsc::OwnedPermit<u8>, u8) -> sync::mpsc::Sender<u8>;
    }
    calls! { sync::mpsc::Permit<'a, u8>:
        fn send(sync::mpsc::Permit<'a, u8>, u8);
    }
    calls! { sync::mpsc::Receiver<u8>:
        fn blocking_recv(&'b mut sync::mpsc::Receiver<u8>) -> Option<u8>;
        fn blocking_recv_many(&'b mut sync::mpsc::Receiver<u8>, &'c mut Vec<u8>, usize) -> usize;
        fn capacity(&'b sync::mpsc::Receiver<u8>) -> usize;
        fn close(&'b mut sync::mpsc::Receiver<u8>);
        fn is_closed(&'b sync::mpsc::Receiver<u8>) -> bool;
        fn is_empty(&'b sync::mpsc::Receiver<u8>) -> bool;
        fn len(&'b sync::mpsc::Receiver<u8>) -> usize;
        fn max_capacity(&'b sync::mpsc::Receiver<u8>) -> usize;
        fn poll_recv(&'b mut sync::mpsc::Receiver<u8>, Cx<'c>) -> Poll<Option<u8>>;
        fn poll_recv_many(&'b mut sync::mpsc::Receiver<u8>, Cx<'c>, &'c mut Vec<u8>, usize) -> Poll<usize>;
        async fn recv(&'b mut sync::mpsc::Receiver<u8>) -> Option<u8>;
        async fn recv_many(&'b mut sync::mpsc::Receiver<u8>, &'c mut Vec<u8>, usize) -> usize;
        fn sender_strong_count(&'b sync::mpsc::Receiver<u8>) -> usize;
        fn sender_weak_count(&'b sync::mpsc::Receiver<u8>) -> usize;
        fn try_recv(&'b mut sync::mpsc::Receiver<u8>) -> Result<u8, sync::mpsc::error::TryRecvError>;
    }
    calls! { sync::mpsc::Sender<u8>:
        fn blocking_send(&'b sync::mpsc::Sender<u8>, u8) -> Result<(), sync::mpsc::error::SendError<u8>>;
        fn capacity(&'b sync::mpsc::Sender<u8>) -> usize;
        async fn closed(&'b sync::mpsc::Sender<u8>);
        fn downgrade(&'b sync::mpsc::Sender<u8>) -> sync::mpsc::WeakSender<u8>;
        fn is_closed(&'b sync::mpsc::Sender<u8>) -> bool;
        fn max_capacity(&'b sync::mpsc::Sender<u8>) -> usize;
        async fn reserve(&'b sync::mpsc::Sender<u8>) -> Result<sync::mpsc::Permit<'b, u8>, sync::mpsc::error::SendError<()>>;
        async fn reserve_many(&'b sync::mpsc::Sender<u8>, usize) -> Result<sync::mpsc::PermitIterator<'b, u8>, sync::mpsc::error::SendError<()>>;
        async fn reserve_owned(sync::mpsc::Sender<u8>) -> Result<sync::mpsc::OwnedPermit<u8>, sync::mpsc::error::SendError<()>>;
        fn same_channel(&'b sync::mpsc::Sender<u8>, &'c sync::mpsc::Sender<u8>) -> bool;
        async fn send(&'b sync::mpsc::Sender<u8>, u8) -> Result<(), sync::mpsc::error::SendError<u8>>;
        fn strong_count(&'b sync::mpsc::Sender<u8>) -> usize;
        fn try_reserve(&'b sync::mpsc::Sender<u8>) -> Result<sync::mpsc::Permit<'b, u8>, sync::mpsc::error::TrySendError<()>>;
        fn try_reserve_many(&'b sync::mpsc::Sender<u8>, usize) -> Result<sync::mpsc::PermitIterator<'b, u8>, sync::mpsc::error::TrySendError<()>>;
        fn try_reserve_owned(sync::mpsc::Sender<u8>) -> Result<sync::mpsc::OwnedPermit<u8>, sync::mpsc::error::TrySendError<sync::mpsc::Sender<u8>>>;
        fn try_send(&'b sync::mpsc::Sender<u8>, u8) -> Result<(), sync::mpsc::error::TrySendError<u8>>;
        fn weak_count(&'b sync::mpsc::Sender<u8>) -> usize;
    }
    calls! { sync::mpsc::UnboundedReceiver<u8>:
        fn blocking_recv(&'b mut sync::mpsc::UnboundedReceiver<u8>) -> Option<u8>;
        fn blocking_recv_many(&'b mut sync::mpsc::UnboundedReceiver<u8>, &'c mut Vec<u8>, usize) -> usize;
        fn close(&'b mut sync::mpsc::UnboundedReceiver<u8>);
        fn is_closed(&'b sync::mpsc::UnboundedReceiver<u8>) -> bool;
        fn is_empty(&'b sync::mpsc::UnboundedReceiver<u8>) -> bool;
        fn len(&'b sync::mpsc::UnboundedReceiver<u8>) -> usize;
        fn poll_recv(&'b mut sync::mpsc::UnboundedReceiver<u8>, Cx<'c>) -> Poll<Option<u8>>;
        fn poll_recv_many(&'b mut sync::mpsc::UnboundedReceiver<u8>, Cx<'c>, &'c mut Vec<u8>, usize) -> Poll<usize>;
        async fn recv(&'b mut sync::mpsc::UnboundedReceiver<u8>) -> Option<u8>;
        async fn recv_many(&'b mut sync::mpsc::UnboundedReceiver<u8>, &'c mut Vec<u8>, usize) -> usize;
        fn sender_strong_count(&'b sync::mpsc::UnboundedReceiver<u8>) -> usize;
        fn sender_weak_count(&'b sync::mpsc::UnboundedReceiver<u8>) -> usize;
        fn try_recv(&'b mut sync::mpsc::UnboundedReceiver<u8>) -> Result<u8, sync::mpsc::error::TryRecvError>;
    }
    calls! { sync::mpsc::UnboundedSender<u8>:
        async fn closed(&'b sync::mpsc::UnboundedSender<u8>);
        fn downgrade(&'b sync::mpsc::UnboundedSender<u8>) -> sync::mpsc::WeakUnboundedSender<u8>;
        fn is_closed(&'b sync::mpsc::UnboundedSender<u8>) -> bool;
        fn same_channel(&'b sync::mpsc::UnboundedSender<u8>, &'c sync::mpsc::UnboundedSender<u8>) -> bool;
        fn send(&'b sync::mpsc::UnboundedSender<u8>, u8) -> Result<(), sync::mpsc::error::SendError<u8>>;
        fn strong_count(&'b sync::mpsc::UnboundedSender<u8>) -> usize;
        fn weak_count(&'b sync::mpsc::UnboundedSender<u8>) -> usize;
    }
    calls! { sync::mpsc::WeakSender<u8>:
        fn strong_count(&'b sync::mpsc::WeakSender<u8>) -> usize;
        fn upgrade(&'b sync::mpsc::WeakSender<u8>) -> Option<sync::mpsc::Sender<u8>>;
        fn weak_count(&'b sync::mpsc::WeakSender<u8>) -> usize;
    }
    calls! { sync::mpsc::WeakUnboundedSender<u8>:
        fn strong_count(&'b sync::mpsc::WeakUnboundedSender<u8>) -> usize;
        fn upgrade(&'b sync::mpsc::WeakUnboundedSender<u8>) -> Option<sync::mpsc::UnboundedSender<u8>>;
        fn weak_count(&'b sync::mpsc::WeakUnboundedSender<u8>) -> usize;
    }
    calls! { sync::mpsc::error::SendTimeoutError<u8>:
        fn into_inner(sync::mpsc::error::SendTimeoutError<u8>) -> u8;
    }
    calls! { sync::mpsc::error::TrySendError<u8>:
        fn into_inner(sync::mpsc::error::TrySendError<u8>) -> u8;
    }
    calls! { sync::oneshot::Receiver<u8>:
        fn blocking_recv(sync::oneshot::Receiver<u8>) -> Result<u8, sync::oneshot::error::RecvError>;
        fn close(&'b mut sync::oneshot::Receiver<u8>);
        fn is_empty(&'b sync::oneshot::Receiver<u8>) -> bool;
        fn is_terminated(&'b sync::oneshot::Receiver<u8>) -> bool;
        fn try_recv(&'b mut sync::oneshot::Receiver<u8>) -> Result<u8, sync::oneshot::error::TryRecvError>;
    }
    calls! { sync::oneshot::Sender<u8>:
        async fn closed(&'b mut sync::oneshot::Sender<u8>);
        fn is_closed(&'b sync::oneshot::Sender<u8>) -> bool;
        fn poll_closed(&'b mut sync::oneshot::Sender<u8>, Cx<'c>) -> Poll<()>;
        fn send(sync::oneshot::Sender<u8>, u8) -> Result<(), u8>;
    }
    calls! { sync::watch::Receiver<u8>:
        fn borrow(&'b sync::watch::Receiver<u8>) -> sync::watch::Ref<'b, u8>;
        fn borrow_and_update(&'b mut sync::watch::Receiver<u8>) -> sync::watch::Ref<'b, u8>;
        async fn changed(&'b mut sync::watch::Receiver<u8>) -> Result<(), sync::watch::error::RecvError>;
        fn has_changed(&'b sync::watch::Receiver<u8>) -> Result<bool, sync::watch::error::RecvError>;
        fn is_closed(&'b sync::watch::Receiver<u8>) -> bool;
        fn mark_changed(&'b mut sync::watch::Receiver<u8>);
        fn mark_unchanged(&'b mut sync::watch::Receiver<u8>);
        fn same_channel(&'b sync::watch::Receiver<u8>, &'c sync::watch::Receiver<u8>) -> bool;
        async fn wait_for(&'b mut sync::watch::Receiver<u8>, fn(&u8) -> bool) -> Result<sync::watch::Ref<'b, u8>, sync::watch::error::RecvError>;
    }
    calls! { sync::watch::Ref<'a, u8>:
        fn has_changed(&'b sync::watch::Ref<'a, u8>) -> bool;
    }
    calls! { sync::watch::Sender<u8>:
        fn borrow(&'b sync::watch::Sender<u8>) -> sync::watch::Ref<'b, u8>;
        async fn closed(&'b sync::watch::Sender<u8>);
        fn is_closed(&'b sync::watch::Sender<u8>) -> bool;
        fn new(u8) -> sync::watch::Sender<u8>;
        fn receiver_count(&'b sync::watch::Sender<u8>) -> usize;
        fn same_channel(&'b sync::watch::Sender<u8>, &'c sync::watch::Sender<u8>) -> bool;
        fn send(&'b sync::watch::Sender<u8>, u8) -> Result<(), sync::watch::error::SendError<u8>>;
        fn send_if_modified::<fn(&mut u8) -> bool>(&'b sync::watch::Sender<u8>, fn(&mut u8) -> bool) -> bool;
        fn send_modify::<fn(&mut u8)>(&'b sync::watch::Sender<u8>, fn(&mut u8));
        fn send_replace(&'b sync::watch::Sender<u8>, u8) -> u8;
        fn sender_count(&'b sync::watch::Sender<u8>) -> usize;
        fn subscribe(&'b sync::watch::Sender<u8>) -> sync::watch::Receiver<u8>;
    }
    functions! {
        fn [sync::broadcast::channel::<u8>](usize) -> (sync::broadcast::Sender<u8>, sync::broadcast::Receiver<u8>);
        fn [sync::mpsc::channel::<u8>](usize) -> (sync::mpsc::Sender<u8>, sync::mpsc::Receiver<u8>);
        fn [sync::mpsc::unbounded_channel::<u8>]() -> (sync::mpsc::UnboundedSender<u8>, sync::mpsc::UnboundedReceiver<u8>);
        fn [sync::oneshot::channel::<u8>]() -> (sync::oneshot::Sender<u8>, sync::oneshot::Receiver<u8>);
        fn [sync::watch::channel::<u8>](u8) -> (sync::watch::Sender<u8>, sync::watch::Receiver<u8>);
    }
    implements! {
        sync::AcquireError: Debug, Display, Error, Send, Sync, Unpin;
        sync::Barrier: Debug, Send, Sync, Unpin;
        sync::BarrierWaitResult: Clone, Debug, Send, Sync, Unpin;
        sync::MappedMutexGuard<'a, u8>: Debug, Deref, DerefMut, Display, Send, Sync, Unpin;
        sync::Mutex<u8>: Debug, Default, From<u8>, Send, Sync, Unpin;
        sync::MutexGuard<'a, u8>: Debug, Deref, DerefMut, Display, Send, Sync, Unpin;
        sync::Notify: Debug, Default, Send, Sync, Unpin;
        sync::OnceCell<u8>: Clone, Debug, Default, Eq, From<u8>, PartialEq, Send, Sync, Unpin;
        sync::OwnedMappedMutexGuard<u8, u8>: Debug, Deref, DerefMut, Display, Send, Sync, Unpin;
        sync::OwnedMutexGuard<u8>: Debug, Deref, DerefMut, Display, Send, Sync, Unpin;
        sync::OwnedRwLockMappedWriteGuard<u8, u8>: Debug, Deref, DerefMut, Display, Send, Sync, Unpin;
        sync::OwnedRwLockReadGuard<u8, u8>: Debug, Deref, Display, Send, Sync, Unpin;
        sync::OwnedRwLockWriteGuard<u8>: Debug, Deref, DerefMut, Display, Send, Sync, Unpin;
        sync::OwnedSemaphorePermit: Debug, Send, Sync, Unpin;
        sync::RwLock<u8>: Debug, Default, From<u8>, Send, Sync, Unpin;
        sync::RwLockMappedWriteGuard<'a, u8>: Debug, Deref, DerefMut, Display, Send, Sync, Unpin;
        sync::RwLockReadGuard<'a, u8>: Debug, Deref, Display, Send, Sync, Unpin;
        sync::RwLockWriteGuard<'a, u8>: Debug, Deref, DerefMut, Display, Send, Sync, Unpin;
        sync::Semaphore: Debug, Send, Sync, Unpin;
        sync::SemaphorePermit<'a>: Debug, Send, Sync, Unpin;
        sync::SetError<u8>: Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::SetOnce<u8>: Clone, Debug, Default, Eq, From<u8>, PartialEq, Send, Sync, Unpin;
        sync::SetOnceError<u8>: Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::TryAcquireError: Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::TryLockError: Debug, Display, Error, Send, Sync, Unpin;
        sync::broadcast::Receiver<u8>: Debug, Send, Sync, Unpin;
        sync::broadcast::Sender<u8>: Clone, Debug, Send, Sync, Unpin;
        sync::broadcast::WeakSender<u8>: Clone, Debug, Send, Sync, Unpin;
        sync::broadcast::error::RecvError: Clone, Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::broadcast::error::SendError<u8>: Debug, Display, Error, Send, Sync, Unpin;
        sync::broadcast::error::TryRecvError: Clone, Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::futures::Notified<'a>: Debug, Future, Send, Sync;
        sync::futures::OwnedNotified: Debug, Future, Send, Sync;
        sync::mpsc::OwnedPermit<u8>: Debug, Send, Sync, Unpin;
        sync::mpsc::Permit<'a, u8>: Debug, Send, Sync, Unpin;
        sync::mpsc::PermitIterator<'a, u8>: Debug, ExactSizeIterator, Iterator, Send, Sync, Unpin, std::iter::FusedIterator;
        sync::mpsc::Receiver<u8>: Debug, Send, Sync, Unpin;
        sync::mpsc::Sender<u8>: Clone, Debug, Send, Sync, Unpin;
        sync::mpsc::UnboundedReceiver<u8>: Debug, Send, Sync, Unpin;
        sync::mpsc::UnboundedSender<u8>: Clone, Debug, Send, Sync, Unpin;
        sync::mpsc::WeakSender<u8>: Clone, Debug, Send, Sync, Unpin;
        sync::mpsc::WeakUnboundedSender<u8>: Clone, Debug, Send, Sync, Unpin;
        sync::mpsc::error::SendError<u8>: Clone, Copy, Debug, Display, Eq, Error, From<sync::mpsc::error::SendError<u8>>, PartialEq, Send, Sync, Unpin;
        sync::mpsc::error::SendTimeoutError<u8>: Clone, Copy, Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::mpsc::error::TryRecvError: Clone, Copy, Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::mpsc::error::TrySendError<u8>: Clone, Copy, Debug, Display, Eq, Error, From<sync::mpsc::error::SendError<u8>>, PartialEq, Send, Sync, Unpin;
        sync::oneshot::Receiver<u8>: Debug, Future, Send, Sync, Unpin;
        sync::oneshot::Sender<u8>: Debug, Send, Sync, Unpin;
        sync::oneshot::error::RecvError: Clone, Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::oneshot::error::TryRecvError: Clone, Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
        sync::watch::Receiver<u8>: Clone, Debug, Send, Sync, Unpin;
        sync::watch::Ref<'a, u8>: Debug, Deref, Sync, Unpin;
        sync::watch::Sender<u8>: Clone, Debug, Default, Send, Sync, Unpin;
        sync::watch::error::RecvError: Clone, Debug, Display, Error, Send, Sync, Unpin;
        sync::watch::error::SendError<u8>: Clone, Copy, Debug, Display, Eq, Error, PartialEq, Send, Sync, Unpin;
    }
}
