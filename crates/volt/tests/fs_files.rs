//! Files and directories through the public API, on both flavours, in `block_on` and on workers.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::io::{ErrorKind, SeekFrom};
use std::pin::{Pin, pin};
use std::sync::mpsc::{RecvError, Sender, channel};
use std::task::{Context, Poll, Waker};

use volt::fs::{self, File, OpenOptions};
use volt::io::{AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite, AsyncWriteExt};
use volt::runtime::Runtime;
use volt::task::JoinHandle;

#[path = "support/files.rs"]
mod support;

use support::{on_each, pattern};

#[test]
fn content_larger_than_the_buffer_survives_the_round_trip() {
    on_each(|folder| async move {
        let (path, content) = (folder.join("big"), pattern(5_000_003));
        let mut file = File::create(&path).await.unwrap();
        file.write_all(&content).await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), content);
        let mut read = Vec::new();
        File::open(&path).await.unwrap().read_to_end(&mut read).await.unwrap();
        assert_eq!(read, content);
    });
}

#[test]
fn a_small_buffer_limits_each_operation_and_loses_nothing() {
    on_each(|folder| async move {
        let (path, content) = (folder.join("it"), pattern(1000));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .await
            .unwrap();
        file.set_max_buf_size(7);
        assert_eq!(file.write(&content).await.unwrap(), 7);
        file.write_all(&content[7..]).await.unwrap();
        file.rewind().await.unwrap();
        let mut read = Vec::new();
        file.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, content);
    });
}

#[test]
fn the_position_is_right_between_reads_seeks_and_writes() {
    on_each(|folder| async move {
        let path = folder.join("it");
        fs::write(&path, "0123456789").await.unwrap();
        let mut file = OpenOptions::new().read(true).write(true).open(&path).await.unwrap();
        let mut two = [0; 2];
        file.read_exact(&mut two).await.unwrap();
        assert_eq!(&two, b"01");
        assert_eq!(file.stream_position().await.unwrap(), 2);
        file.write_all(b"ab").await.unwrap();
        assert_eq!(file.seek(SeekFrom::Current(1)).await.unwrap(), 5);
        file.read_exact(&mut two).await.unwrap();
        assert_eq!(&two, b"56");
        assert_eq!(file.seek(SeekFrom::End(-1)).await.unwrap(), 9);
        file.write_all(b"z").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(fs::read_to_string(&path).await.unwrap(), "01ab45678z");
        assert!(file.seek(SeekFrom::Current(-100)).await.is_err());
    });
}

/// Drops a read that is under way.
async fn begin_and_cancel_a_read(file: &mut File) {
    let mut bytes = [0; 4];
    loop {
        let polled = pin!(file.read(&mut bytes)).poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            Poll::Pending => return,
            // The blocking pool was faster than the poll.
            Poll::Ready(read) => {
                let back = -i64::try_from(read.unwrap()).unwrap();
                file.seek(SeekFrom::Current(back)).await.unwrap();
            }
        }
    }
}

/// Takes a thread for blocking work, until the first of the results is dropped.
fn hold_a_thread() -> (Sender<()>, JoinHandle<Result<(), RecvError>>) {
    let (release, held) = channel();
    (release, volt::task::spawn_blocking(move || held.recv()))
}

/// A read that is dropped under way has moved the file's position; its bytes are delivered next, or
/// the position is moved back before a write.
#[test]
fn a_cancelled_read_loses_no_bytes() {
    on_each(|folder| async move {
        let path = folder.join("it");
        fs::write(&path, "0123456789").await.unwrap();
        let mut file = OpenOptions::new().read(true).write(true).open(&path).await.unwrap();
        let mut bytes = [0; 4];
        begin_and_cancel_a_read(&mut file).await;
        file.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"0123");
        begin_and_cancel_a_read(&mut file).await;
        file.write_all(b"X").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"0123X56789");
        begin_and_cancel_a_read(&mut file).await;
        use std::io::Seek;
        assert_eq!(file.into_std().await.stream_position().unwrap(), 5);
    });
}

/// Two handles share the position, so it must not be behind what one of them has read ahead.
#[test]
fn a_clone_goes_on_where_the_file_is_after_a_cancelled_read() {
    on_each(|folder| async move {
        let path = folder.join("it");
        fs::write(&path, "0123456789").await.unwrap();
        let mut file = File::open(&path).await.unwrap();
        begin_and_cancel_a_read(&mut file).await;
        let mut clone = file.try_clone().await.unwrap();
        let mut bytes = [0; 4];
        clone.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"0123");
        file.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"4567", "it has forgotten what it read ahead");
    });
}

/// What was cut off must not be delivered.
#[test]
fn bytes_that_were_read_ahead_do_not_survive_a_change_of_the_length() {
    on_each(|folder| async move {
        let path = folder.join("it");
        fs::write(&path, "abcdef").await.unwrap();
        let mut file = OpenOptions::new().read(true).write(true).open(&path).await.unwrap();
        begin_and_cancel_a_read(&mut file).await;
        file.set_len(3).await.unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "abc");
        assert_eq!(file.stream_position().await.unwrap(), 3);
    });
}

/// The only thread for blocking work is held, so that the change is late for sure.
#[test]
fn a_cancelled_change_of_the_length_is_waited_for_by_the_next_operation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    let mut builder = volt::runtime::Builder::new_current_thread();
    builder.max_blocking_threads(1).build().unwrap().block_on(async {
        let mut file = File::create(&path).await.unwrap();
        file.write_all(b"gone").await.unwrap();
        file.flush().await.unwrap();
        let (release, hold) = hold_a_thread();
        let polled = pin!(file.set_len(0)).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        // The file is not here: a write would wait as well.
        let sought = Pin::new(&mut file).start_seek(SeekFrom::Start(0));
        assert!(sought.is_err(), "the change is not under way");
        drop(release);
        assert!(hold.await.unwrap().is_err());
        file.rewind().await.unwrap();
        file.write_all(b"kept").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(file.metadata().await.unwrap().len(), 4);
        assert_eq!(fs::read(&path).await.unwrap(), b"kept");
    });
}

/// The change and the write are on two threads, in any order, if nothing keeps them apart.
#[test]
fn a_cancelled_change_of_the_length_destroys_nothing_that_is_written_later() {
    on_each(|folder| async move {
        for round in 0..100 {
            let path = folder.join(round.to_string());
            let mut file = File::create(&path).await.unwrap();
            let _ = pin!(file.set_len(0)).poll(&mut Context::from_waker(Waker::noop()));
            file.write_all(b"important").await.unwrap();
            file.flush().await.unwrap();
            // What is late would come before this has its turn.
            volt::task::spawn_blocking(|| ()).await.unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"important");
        }
    });
}

#[test]
fn a_failed_write_is_reported_by_the_next_call() {
    on_each(|folder| async move {
        let path = folder.join("it");
        fs::write(&path, "12").await.unwrap();
        let mut file = File::open(&path).await.unwrap();
        // Reported as done: the write itself happens in the background.
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        assert!(file.flush().await.is_err());
        file.flush().await.unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "12");
    });
}

#[test]
fn length_metadata_and_handles() {
    on_each(|folder| async move {
        let path = folder.join("it");
        let mut file = File::create_new(&path).await.unwrap();
        assert_eq!(File::create_new(&path).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        file.write_all(b"123456").await.unwrap();
        file.set_len(3).await.unwrap();
        file.sync_all().await.unwrap();
        file.sync_data().await.unwrap();
        assert_eq!(file.metadata().await.unwrap().len(), 3);
        let mut twin = file.try_clone().await.unwrap();
        twin.rewind().await.unwrap();
        file.write_all(b"9").await.unwrap();
        drop(file.into_std().await);
        assert_eq!(fs::read_to_string(&path).await.unwrap(), "923");
        assert!(twin.try_into_std().is_ok());
    });
}

#[test]
fn a_vectored_write_takes_all_parts_up_to_the_size_of_the_buffer() {
    use std::io::IoSlice;
    on_each(|folder| async move {
        let path = folder.join("it");
        let mut file = File::create(&path).await.unwrap();
        assert!(AsyncWrite::is_write_vectored(&file));
        let parts = [IoSlice::new(b"abc"), IoSlice::new(b""), IoSlice::new(b"def")];
        assert_eq!(file.write_vectored(&parts).await.unwrap(), 6);
        // Into a buffer that has room, and into one that has room for a part.
        assert_eq!(file.write_vectored(&parts[..1]).await.unwrap(), 3);
        let more = [IoSlice::new(b"0123"), IoSlice::new(b"4567"), IoSlice::new(b"89")];
        assert_eq!(file.write_vectored(&more).await.unwrap(), 10);
        file.set_max_buf_size(5);
        assert_eq!(file.write_vectored(&parts).await.unwrap(), 5);
        assert_eq!(file.write_vectored(&[]).await.unwrap(), 0);
        file.flush().await.unwrap();
        assert_eq!(fs::read_to_string(&path).await.unwrap(), "abcdefabc0123456789abcde");
    });
}

#[test]
#[should_panic(expected = "`max_buf_size` must be greater than 0")]
fn a_buffer_of_no_size_is_refused() {
    File::from_std(tempfile::tempfile().unwrap()).set_max_buf_size(0);
}

/// The only thread for blocking work is held, so that the cancelled call has the file for sure.
#[test]
fn a_file_that_a_cancelled_call_still_has_is_not_said_to_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "0123456789").unwrap();
    let mut builder = volt::runtime::Builder::new_current_thread();
    builder.max_blocking_threads(1).build().unwrap().block_on(async {
        let mut file = File::open(&path).await.unwrap();
        file.set_max_buf_size(5);
        begin_and_cancel_a_read(&mut file).await;
        assert_eq!(file.read_u8().await.unwrap(), b'0');
        let (release, hold) = hold_a_thread();
        let polled = pin!(file.metadata()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        // What is returned is as it was.
        let mut file = file.try_into_std().unwrap_err();
        let mut bytes = [0; 3];
        file.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"123", "they were read ahead");
        assert_eq!(file.max_buf_size(), 5);
        let error = volt::spawn(async { drop(file.into_std().await) }).await.unwrap_err();
        let panic = error.into_panic().downcast::<String>().map(|text| *text);
        let said = panic.unwrap_or_else(|panic| (*panic.downcast::<&str>().unwrap()).to_owned());
        assert!(said.contains("a cancelled call still has the file"), "{said}");
        drop(release);
        assert!(hold.await.unwrap().is_err());
    });
}

#[test]
fn a_failed_write_is_reported_also_after_the_file_was_asked_back_in_vain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "").unwrap();
    let mut builder = volt::runtime::Builder::new_current_thread();
    builder.max_blocking_threads(1).build().unwrap().block_on(async {
        let mut file = File::open(&path).await.unwrap();
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        // The write is over, and nobody has heard of its error.
        assert!(file.metadata().await.is_ok());
        let (release, hold) = hold_a_thread();
        let polled = pin!(file.metadata()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        let mut file = file.try_into_std().unwrap_err();
        assert!(file.flush().await.is_err());
        drop(release);
        assert!(hold.await.unwrap().is_err());
    });
}

/// It used to be the last to ask for its end, and so the only one that was told.
#[test]
fn who_waits_for_an_operation_is_woken_though_the_file_was_asked_back_in_vain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "123").unwrap();
    one_blocking_thread().block_on(async {
        let mut file = Some(File::open(&path).await.unwrap());
        let (release, _hold) = hold_a_thread();
        let mut release = Some(release);
        let read = poll_fn(|cx| {
            let (mut asked, mut bytes) = (file.take().unwrap(), [0; 3]);
            let polled = pin!(asked.read(&mut bytes)).poll(cx).map(Result::unwrap);
            if polled.is_pending() {
                file = Some(asked.try_into_std().unwrap_err());
                drop(release.take());
            }
            polled
        });
        let read = volt::time::timeout(std::time::Duration::from_secs(20), read).await;
        assert_eq!(read.expect("it is woken"), 3);
    });
}

/// Waits until the only thread for blocking work has done what it was given.
async fn nothing_is_under_way(path: &std::path::Path) {
    fs::metadata(path).await.unwrap();
}

#[test]
fn a_file_is_given_back_when_its_operation_is_over_and_nobody_has_looked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "0123456789").unwrap();
    one_blocking_thread().block_on(async {
        let open = || async { File::options().read(true).write(true).open(&path).await.unwrap() };
        let mut file = open().await;
        file.write_all(b"x").await.unwrap();
        nothing_is_under_way(&path).await;
        assert_eq!(std::io::Seek::stream_position(&mut file.try_into_std().unwrap()).unwrap(), 1);
        // What was read and not delivered is given back.
        let mut file = open().await;
        begin_and_cancel_a_read(&mut file).await;
        nothing_is_under_way(&path).await;
        assert_eq!(std::io::Seek::stream_position(&mut file.try_into_std().unwrap()).unwrap(), 0);
        // Also by a task that has used up its budget.
        let mut file = open().await;
        file.write_all(b"y").await.unwrap();
        nothing_is_under_way(&path).await;
        poll_fn(|cx| {
            while volt::task::coop::has_budget_remaining() {
                let _ = pin!(volt::task::consume_budget()).poll(cx);
            }
            Poll::Ready(())
        })
        .await;
        assert!(file.try_into_std().is_ok());
    });
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "y123456789");
}

#[test]
fn a_file_is_not_given_back_beside_an_error_that_nobody_has_heard_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "").unwrap();
    one_blocking_thread().block_on(async {
        let mut file = File::open(&path).await.unwrap();
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        nothing_is_under_way(&path).await;
        let file = file.try_into_std().unwrap_err();
        let mut file = file.try_into_std().unwrap_err();
        assert!(file.flush().await.is_err());
        assert!(file.try_into_std().is_ok());
        // Whoever waits is given it in any case.
        let mut file = File::open(&path).await.unwrap();
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        drop(file.into_std().await);
    });
}

fn one_blocking_thread() -> Runtime {
    volt::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap()
}

/// Polls `operation` in a runtime that is shut down before it runs.
fn begin_and_lose(operation: impl Future) {
    let gone = one_blocking_thread();
    let release = gone.block_on(async {
        let (release, _) = hold_a_thread();
        assert!(pin!(operation).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        release
    });
    gone.shutdown_background();
    drop(release);
}

/// An operation that was waiting when its runtime shut down is an error. The file is none.
#[test]
fn a_file_is_usable_when_an_operation_was_lost_with_its_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "0123456789").unwrap();
    let here = one_blocking_thread();
    let mut file = here.block_on(File::open(&path)).unwrap();
    begin_and_lose(file.read(&mut [0; 4]));
    here.block_on(async {
        let mut bytes = [0; 4];
        let said = file.read(&mut bytes).await.unwrap_err().to_string();
        assert!(said.contains("its runtime was shut down"), "{said}");
        assert_eq!(file.read(&mut bytes).await.unwrap(), 4);
        assert_eq!(&bytes, b"0123");
        assert_eq!(file.into_std().await.metadata().unwrap().len(), 10);
    });
}

/// What was read ahead is still to be given back when the operation that was to do that is lost.
#[test]
fn a_lost_operation_moves_no_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    let runtime = || volt::runtime::Builder::new_current_thread().build().unwrap();
    let here = runtime();
    for write in [true, false] {
        std::fs::write(&path, "0123456789").unwrap();
        let mut file = here.block_on(async {
            let mut file = OpenOptions::new().read(true).write(true).open(&path).await.unwrap();
            begin_and_cancel_a_read(&mut file).await;
            assert_eq!(file.read_u8().await.unwrap(), b'0');
            file
        });
        let gone = runtime();
        let handle = gone.handle().clone();
        drop(gone);
        let guard = handle.enter();
        let mut cx = Context::from_waker(Waker::noop());
        if write {
            assert!(pin!(file.write(b"X")).poll(&mut cx).is_ready());
        } else {
            let polled = pin!(file.set_len(10)).poll(&mut cx);
            assert!(!matches!(polled, Poll::Ready(Ok(()))));
        }
        drop(guard);
        here.block_on(async {
            // An operation that was under way is reported once.
            let _ = file.flush().await;
            file.write_all(b"Y").await.unwrap();
            file.flush().await.unwrap();
        });
        assert_eq!(std::fs::read(&path).unwrap(), b"0Y23456789");
    }
}

/// Nor is it forgotten when the file is given back before anybody has heard of the loss.
#[test]
fn a_file_that_is_given_back_after_a_lost_operation_has_its_position() {
    use std::io::Seek;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "0123456789").unwrap();
    let file = one_blocking_thread().block_on(async {
        let mut file = OpenOptions::new().read(true).write(true).open(&path).await.unwrap();
        begin_and_cancel_a_read(&mut file).await;
        assert_eq!(file.read_u8().await.unwrap(), b'0');
        std::thread::scope(|scope| {
            scope.spawn(|| begin_and_lose(file.set_len(10)));
        });
        file
    });
    // It needs no runtime for that.
    assert_eq!(volt::pool::block_on(file.into_std()).stream_position().unwrap(), 1);
}

#[test]
fn directories_are_made_listed_and_removed() {
    on_each(|folder| async move {
        let names: BTreeSet<String> = (0..100).map(|number| format!("file{number}")).collect();
        let inner = folder.join("a/b");
        fs::create_dir_all(&inner).await.unwrap();
        for name in &names {
            fs::write(inner.join(name), name).await.unwrap();
        }
        let mut found = BTreeSet::new();
        let mut entries = fs::read_dir(&inner).await.unwrap();
        while let Some(entry) = entries.next_entry().await.unwrap() {
            assert!(entry.file_type().await.unwrap().is_file());
            let name = entry.file_name().into_string().unwrap();
            assert_eq!(entry.metadata().await.unwrap().len(), name.len() as u64);
            found.insert(name);
        }
        assert_eq!(found, names);
        assert!(entries.next_entry().await.unwrap().is_none());
        fs::remove_dir_all(folder.join("a")).await.unwrap();
        assert!(!fs::try_exists(&inner).await.unwrap());
    });
}

/// As in Tokio: the first entries are read with it.
#[test]
fn a_directory_that_is_emptied_after_it_was_opened_is_listed_as_it_was() {
    on_each(|folder| async move {
        std::fs::write(folder.join("it"), "").unwrap();
        let mut entries = fs::read_dir(&folder).await.unwrap();
        std::fs::remove_file(folder.join("it")).unwrap();
        let entry = entries.next_entry().await.unwrap().expect("it was there");
        assert_eq!(entry.file_name(), "it");
        assert_eq!(entry.metadata().await.unwrap_err().kind(), ErrorKind::NotFound);
        assert!(entries.next_entry().await.unwrap().is_none());
    });
}

#[test]
fn outside_of_a_runtime_the_call_that_needs_one_is_named() {
    fn message<T>(call: impl Future<Output = T>) -> String {
        let poll = std::panic::AssertUnwindSafe(|| {
            let _ = pin!(call).poll(&mut Context::from_waker(Waker::noop()));
        });
        let panic = std::panic::catch_unwind(poll).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    }
    let needs = |name: &str| format!("`{name}` needs a Volt runtime");
    let folder = tempfile::tempdir().unwrap();
    // One more than come with the directory.
    (0..33).for_each(|number| std::fs::write(folder.path().join(number.to_string()), "").unwrap());
    let mut entries = volt::run(fs::read_dir(folder.path())).unwrap();
    for _ in 0..32 {
        assert!(volt::pool::block_on(entries.next_entry()).unwrap().is_some());
    }
    assert!(message(entries.next_entry()).starts_with(&needs("ReadDir::next_entry")));
    let polled = message(poll_fn(|cx| entries.poll_next_entry(cx)));
    assert!(polled.starts_with(&needs("ReadDir::poll_next_entry")), "{polled}");
    let entry = volt::run(entries.next_entry()).unwrap();
    assert!(entry.is_some(), "no entry was lost");
    assert!(message(fs::read("it")).starts_with(&needs("fs::read")));
    assert!(message(fs::write("it", "")).starts_with(&needs("fs::write")));
    assert!(message(fs::read_dir(".")).starts_with(&needs("fs::read_dir")));
    assert!(message(File::open("it")).starts_with(&needs("File::open")));
    assert!(message(File::create_new("it")).starts_with(&needs("File::create_new")));
    assert!(
        message(File::options().read(true).open("it")).starts_with(&needs("OpenOptions::open"))
    );
}

#[test]
fn missing_files_are_errors_with_the_systems_kind() {
    on_each(|folder| async move {
        let path = folder.join("nothing");
        assert_eq!(fs::read(&path).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(File::open(&path).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::read_dir(&path).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::remove_file(&path).await.unwrap_err().kind(), ErrorKind::NotFound);
    });
}
