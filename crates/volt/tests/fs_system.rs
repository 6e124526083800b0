//! What the file system keeps beside a file's content: names, links, permissions, times. On both
//! flavours, in `block_on` and on workers.
#![cfg(unix)]

#[path = "support/files.rs"]
mod support;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{ErrorKind, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use volt::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use volt::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use support::net::stress;
use support::{on_each, pattern};

fn mode(metadata: &std::fs::Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}

#[test]
fn files_are_copied_renamed_and_removed() {
    on_each(|folder| async move {
        let (path, copy, new) = (folder.join("it"), folder.join("copy"), folder.join("new"));
        fs::write(&path, "content").await.unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).await.unwrap();
        assert_eq!(fs::copy(&path, &copy).await.unwrap(), 7);
        assert_eq!(std::fs::read(&copy).unwrap(), b"content");
        assert_eq!(mode(&std::fs::metadata(&copy).unwrap()), 0o640);
        fs::write(&new, "is replaced").await.unwrap();
        fs::rename(&copy, &new).await.unwrap();
        assert!(!copy.exists());
        assert_eq!(std::fs::read(&new).unwrap(), b"content");
        fs::remove_file(&new).await.unwrap();
        assert!(!new.exists());
        assert!(path.exists(), "only the copy was moved and removed");
    });
}

#[test]
fn links_are_made_read_and_followed() {
    on_each(|folder| async move {
        let (path, hard, soft) = (folder.join("it"), folder.join("hard"), folder.join("soft"));
        fs::write(&path, "content").await.unwrap();
        fs::hard_link(&path, &hard).await.unwrap();
        let (one, other) = (fs::metadata(&path).await.unwrap(), fs::metadata(&hard).await.unwrap());
        assert_eq!((one.ino(), one.nlink()), (other.ino(), 2));
        fs::symlink("it", &soft).await.unwrap();
        assert_eq!(fs::read_link(&soft).await.unwrap().to_str(), Some("it"));
        assert!(fs::symlink_metadata(&soft).await.unwrap().is_symlink());
        assert_eq!(fs::metadata(&soft).await.unwrap().ino(), one.ino());
        let through = folder.join("./soft");
        let real = std::fs::canonicalize(&*folder).unwrap().join("it");
        assert_eq!(fs::canonicalize(&through).await.unwrap(), real);
        fs::remove_file(&path).await.unwrap();
        assert_eq!(fs::metadata(&soft).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert!(fs::symlink_metadata(&soft).await.unwrap().is_symlink());
        assert!(!fs::try_exists(&soft).await.unwrap());
    });
}

#[test]
fn directories_are_made_one_by_one_or_all_at_once() {
    on_each(|folder| async move {
        let (outer, inner) = (folder.join("a"), folder.join("a/b"));
        assert_eq!(fs::create_dir(&inner).await.unwrap_err().kind(), ErrorKind::NotFound);
        fs::create_dir(&outer).await.unwrap();
        assert_eq!(fs::create_dir(&outer).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        fs::create_dir(&inner).await.unwrap();
        assert!(fs::remove_dir(&outer).await.is_err(), "it is not empty");
        fs::remove_dir(&inner).await.unwrap();
        fs::remove_dir(&outer).await.unwrap();
        assert!(!outer.exists());

        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        assert_eq!(builder.create(&inner).await.unwrap_err().kind(), ErrorKind::NotFound);
        builder.recursive(true).create(&inner).await.unwrap();
        assert_eq!(mode(&std::fs::metadata(&inner).unwrap()), 0o700);
        builder.create(&inner).await.unwrap();
        let error = builder.recursive(false).create(&inner).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    });
}

#[test]
fn permissions_are_those_of_the_file() {
    on_each(|folder| async move {
        let path = folder.join("it");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).mode(0o600).open(&path).await.unwrap();
        assert_eq!(mode(&file.metadata().await.unwrap()), 0o600);
        file.set_permissions(PermissionsExt::from_mode(0o444)).await.unwrap();
        assert!(file.metadata().await.unwrap().permissions().readonly());
        assert_eq!(mode(&fs::metadata(&path).await.unwrap()), 0o444);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).await.unwrap();
        assert_eq!(mode(&file.metadata().await.unwrap()), 0o755);
    });
}

/// A write that came to the file after its times were set would set them again.
#[test]
fn times_that_are_set_stay_although_a_write_was_under_way() {
    on_each(|folder| async move {
        let path = folder.join("it");
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let content = pattern(1 << 20);
        for round in 0..4 {
            let mut file = File::create(&path).await.unwrap();
            // Reported as done: the write itself happens in the background.
            assert_eq!(file.write(&content).await.unwrap(), content.len());
            if round % 2 == 0 {
                file.set_modified(at(1_000_000)).await.unwrap();
                let modified = file.metadata().await.unwrap().modified().unwrap();
                assert_eq!(modified, at(1_000_000));
            } else {
                let times =
                    FileTimes::new().set_accessed(at(2_000_000)).set_modified(at(3_000_000));
                file.set_times(times).await.unwrap();
                let metadata = file.metadata().await.unwrap();
                assert_eq!(metadata.accessed().unwrap(), at(2_000_000));
                assert_eq!(metadata.modified().unwrap(), at(3_000_000));
            }
            assert_eq!(std::fs::metadata(&path).unwrap().len(), content.len() as u64);
        }
    });
}

#[test]
fn each_option_of_opening_reaches_the_system() {
    on_each(|folder| async move {
        let path = folder.join("it");
        fs::write(&path, "12").await.unwrap();
        let mut log = OpenOptions::new().append(true).open(&path).await.unwrap();
        log.seek(SeekFrom::Start(0)).await.unwrap();
        log.write_all(b"34").await.unwrap();
        log.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1234", "at the end in spite of the position");

        let mut reader = OpenOptions::new().read(true).open(&path).await.unwrap();
        reader.write_all(b"x").await.unwrap();
        assert!(reader.flush().await.is_err(), "it may only read");
        let mut writer = OpenOptions::new().write(true).open(&path).await.unwrap();
        assert!(writer.read(&mut [0]).await.is_err(), "it may only write");
        assert_eq!(std::fs::read(&path).unwrap(), b"1234");

        let mut options = OpenOptions::new();
        let error = options.write(true).create_new(true).open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        options.create_new(false).truncate(true).open(&path).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);

        let link = folder.join("link");
        fs::symlink("it", &link).await.unwrap();
        let mut options = OpenOptions::new();
        options.read(true).open(&link).await.unwrap();
        let error = options.custom_flags(libc::O_NOFOLLOW).open(&link).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        let missing = folder.join("missing");
        let error = OpenOptions::new().write(true).open(&missing).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        OpenOptions::new().write(true).create(true).open(&missing).await.unwrap();
        assert!(missing.exists());
    });
}

/// More entries than one trip to the blocking pool brings.
#[test]
fn entries_are_polled_with_their_inodes() {
    on_each(|folder| async move {
        let mut expected = BTreeMap::new();
        for number in 0..100 {
            let path = folder.join(format!("file{number}"));
            std::fs::write(&path, "").unwrap();
            expected.insert(path.clone(), std::fs::metadata(&path).unwrap().ino());
        }
        let mut entries = fs::read_dir(&folder).await.unwrap();
        let mut found = BTreeMap::new();
        while let Some(entry) = poll_fn(|cx| entries.poll_next_entry(cx)).await.unwrap() {
            found.insert(entry.path(), entry.ino());
        }
        assert_eq!(found, expected);
    });
}

#[test]
fn open_files_and_descriptors_are_taken_over() {
    on_each(|folder| async move {
        let path = folder.join("it");
        std::fs::write(&path, "0123456789").unwrap();
        let open = || std::fs::File::open(&path).unwrap();
        let descriptor = OwnedFd::from(open());
        let number = descriptor.as_raw_fd();
        let taken = File::from(descriptor);
        assert_eq!(taken.as_raw_fd(), number);
        let number = open().into_raw_fd();
        // SAFETY: `into_raw_fd` has given the descriptor away, and only to here.
        let raw = unsafe { File::from_raw_fd(number) };
        assert_eq!(raw.as_raw_fd(), number);
        for mut file in [taken, raw, File::from(open()), File::from_std(open())] {
            let mut three = [0; 3];
            file.seek(SeekFrom::Start(4)).await.unwrap();
            file.read_exact(&mut three).await.unwrap();
            assert_eq!(&three, b"456");
            let std = file.into_std().await;
            let position = File::from_std(std).stream_position().await.unwrap();
            assert_eq!(position, 7);
        }
    });
}

/// Many tasks at once, each on files of its own: some operations are dropped under way.
#[test]
fn stress_of_files_in_many_tasks() {
    on_each(|folder| async move {
        let mut tasks = volt::task::JoinSet::new();
        for number in 0..8 {
            tasks.spawn(many_operations(folder.join(number.to_string()), number, stress(10)));
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        let mut left = fs::read_dir(&folder).await.unwrap();
        assert!(left.next_entry().await.unwrap().is_none());
    });
}

async fn many_operations(folder: std::path::PathBuf, number: usize, rounds: usize) {
    for round in 0..rounds {
        fs::create_dir(&folder).await.unwrap();
        let path = folder.join("it");
        let content = pattern(1 + (number * 7919 + round * 104_729) % 50_000);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create_new(true).open(&path).await.unwrap();
        file.set_max_buf_size(1 + content.len() / (1 + round % 5));
        for piece in content.chunks(1 + content.len() / 3) {
            file.write_all(piece).await.unwrap();
            volt::task::yield_now().await;
        }
        file.rewind().await.unwrap();
        // Dropped under way, or not at all begun: it loses nothing.
        let mut some = [0; 100];
        let cancelled = volt::select! {
            biased;
            () = volt::task::yield_now(), if round % 2 == 0 => true,
            read = file.read(&mut some) => {
                let read = read.unwrap();
                assert_eq!(some[..read], content[..read]);
                false
            }
        };
        if !cancelled {
            file.rewind().await.unwrap();
        }
        let mut read = Vec::new();
        file.read_to_end(&mut read).await.unwrap();
        assert!(read == content, "task {number}, round {round}");
        drop(file);
        assert!(fs::read(&path).await.unwrap() == content);
        fs::remove_dir_all(&folder).await.unwrap();
    }
}
