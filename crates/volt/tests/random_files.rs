//! A file of Volt's does what one of the standard library does, whatever is asked of it in a row.
//!
//! Random steps are done with both, on two files with the same content. After each one that tells, what was read, where the file is, and in the
//! end all of its content have to be equal. Some calls are cancelled after a poll: those that Volt promises to lose nothing by change
//! nothing; for others the standard library's file is put to where Volt's says that it is, which has to be possible.
#![allow(clippy::disallowed_methods, reason = "a test")]

#[path = "support/random.rs"]
mod random;

use std::fs::File as StdFile;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};

use proptest::collection::vec;
use proptest::prelude::*;
use volt::fs::File;
use volt::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

#[derive(Clone, Debug)]
enum Step {
    Read(usize),
    ReadExact(usize),
    ReadToEnd,
    Write(usize),
    WriteAll(usize),
    WriteVectored(usize, usize),
    Flush,
    Seek(SeekFrom),
    Position,
    SetLen(u64),
    Sync,
    Length,
    MaxBuf(usize),
    /// It goes on with another handle of the same file.
    Clone,
    /// It goes on with the file that was given back.
    GiveBack,
    CancelRead(usize),
    CancelReadExact(usize),
    CancelWrite(usize),
    CancelFlush,
    CancelSeek(SeekFrom),
    CancelSetLen(u64),
}

fn steps() -> impl Strategy<Value = Step> {
    let size = || prop_oneof![3 => 0..20_usize, 1 => 0..300_usize];
    let place = || {
        prop_oneof![
            (0..200_u64).prop_map(SeekFrom::Start),
            (-60..60_i64).prop_map(SeekFrom::Current),
            (-200..30_i64).prop_map(SeekFrom::End),
        ]
    };
    prop_oneof![
        4 => size().prop_map(Step::Read),
        2 => size().prop_map(Step::ReadExact),
        1 => Just(Step::ReadToEnd),
        3 => size().prop_map(Step::Write),
        3 => size().prop_map(Step::WriteAll),
        2 => (size(), size()).prop_map(|(one, other)| Step::WriteVectored(one, other)),
        2 => Just(Step::Flush),
        4 => place().prop_map(Step::Seek),
        2 => Just(Step::Position),
        2 => (0..300_u64).prop_map(Step::SetLen),
        1 => Just(Step::Sync),
        1 => Just(Step::Length),
        2 => (1..50_usize).prop_map(Step::MaxBuf),
        1 => Just(Step::Clone),
        1 => Just(Step::GiveBack),
        2 => size().prop_map(Step::CancelRead),
        1 => size().prop_map(Step::CancelReadExact),
        2 => size().prop_map(Step::CancelWrite),
        1 => Just(Step::CancelFlush),
        1 => place().prop_map(Step::CancelSeek),
        1 => (0..300_u64).prop_map(Step::CancelSetLen),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Opened {
    read: bool,
    write: bool,
    append: bool,
}

fn kinds() -> impl Strategy<Value = Opened> {
    let is_there = |opened: &Opened| opened.read || opened.write || opened.append;
    (prop::bool::weighted(0.9), prop::bool::weighted(0.9), prop::bool::weighted(0.2))
        .prop_map(|(read, write, append)| Opened { read, write, append })
        .prop_filter("it has to be opened for something", is_there)
}

/// Both files, and what the next byte that is written is.
struct Both {
    volt: File,
    std: StdFile,
    next: u8,
}

impl Both {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let next = self.next;
        self.next = next.wrapping_add(count as u8);
        (0..count).map(|index| next.wrapping_add(index as u8)).collect()
    }

    /// Errors of writes come late.
    async fn written(&mut self, result: io::Result<usize>, bytes: &[u8]) {
        let result = match result {
            Ok(count) => self.volt.flush().await.map(|()| count),
            Err(error) => Err(error),
        };
        match result {
            Ok(count) => {
                assert!(count > 0 || bytes.is_empty(), "{} bytes", bytes.len());
                self.std.write_all(&bytes[..count]).expect("as Volt's");
            }
            Err(error) => {
                let expected = self.std.write(bytes).map_err(|error| error.kind());
                assert_eq!(expected, Err(error.kind()), "{} bytes", bytes.len());
            }
        }
    }

    async fn position(&mut self) {
        assert_eq!(self.volt.stream_position().await.unwrap(), self.std.stream_position().unwrap());
    }

    #[allow(clippy::too_many_lines, reason = "an arm for each step")]
    async fn step(&mut self, step: Step) {
        match step {
            Step::Read(size) => {
                let mut buffer = vec![0; size];
                let result = self.volt.read(&mut buffer).await;
                let mut expected = vec![0; size];
                match result {
                    // The system is not asked for nothing.
                    Ok(0) if size == 0 => {}
                    Ok(0) => {
                        let read = self.std.read(&mut expected).expect("as Volt's");
                        assert_eq!(read, 0, "of {size}");
                    }
                    Ok(count) => {
                        self.std.read_exact(&mut expected[..count]).expect("as Volt's");
                        assert_eq!(buffer[..count], expected[..count]);
                    }
                    Err(error) => {
                        let expected = self.std.read(&mut expected).map_err(|error| error.kind());
                        assert_eq!(expected, Err(error.kind()));
                    }
                }
            }
            Step::ReadExact(size) => {
                let (mut buffer, mut expected) = (vec![0; size], vec![0; size]);
                let result = self.volt.read_exact(&mut buffer).await.map(drop);
                let std = self.std.read_exact(&mut expected);
                assert_eq!(result.map_err(|e| e.kind()), std.map_err(|e| e.kind()));
                assert_eq!(buffer, expected);
            }
            Step::ReadToEnd => {
                let (mut buffer, mut expected) = (Vec::new(), Vec::new());
                let result = self.volt.read_to_end(&mut buffer).await;
                let std = self.std.read_to_end(&mut expected);
                assert_eq!(result.map_err(|e| e.kind()), std.map_err(|e| e.kind()));
                assert_eq!(buffer, expected);
            }
            Step::Write(size) => {
                let bytes = self.bytes(size);
                let result = self.volt.write(&bytes).await;
                self.written(result, &bytes).await;
            }
            Step::WriteAll(size) => {
                let bytes = self.bytes(size);
                let result = self.volt.write_all(&bytes).await.map(|()| bytes.len());
                self.written(result, &bytes).await;
            }
            Step::WriteVectored(one, other) => {
                let bytes = self.bytes(one + other);
                let parts = [IoSlice::new(&bytes[..one]), IoSlice::new(&bytes[one..])];
                let result = self.volt.write_vectored(&parts).await;
                self.written(result, &bytes).await;
            }
            Step::Flush => self.volt.flush().await.unwrap(),
            Step::Seek(place) => {
                let result = self.volt.seek(place).await.map_err(|error| error.kind());
                assert_eq!(result, self.std.seek(place).map_err(|error| error.kind()));
            }
            Step::Position => self.position().await,
            Step::SetLen(length) => {
                let result = self.volt.set_len(length).await.map_err(|error| error.kind());
                assert_eq!(result, self.std.set_len(length).map_err(|error| error.kind()));
            }
            Step::Sync => {
                self.volt.sync_data().await.unwrap();
                self.volt.sync_all().await.unwrap();
            }
            Step::Length => {
                self.volt.flush().await.unwrap();
                let length = self.volt.metadata().await.unwrap().len();
                assert_eq!(length, self.std.metadata().unwrap().len());
            }
            Step::MaxBuf(bytes) => self.volt.set_max_buf_size(bytes),
            Step::Clone => self.volt = self.volt.try_clone().await.unwrap(),
            Step::GiveBack => {
                let nothing = File::from_std(self.std.try_clone().unwrap());
                let file = std::mem::replace(&mut self.volt, nothing).into_std().await;
                self.volt = File::from_std(file);
                self.position().await;
            }
            Step::CancelRead(size) => {
                let mut buffer = vec![0; size];
                let polled = futures::poll!(std::pin::pin!(self.volt.read(&mut buffer)));
                if let std::task::Poll::Ready(Ok(count)) = polled {
                    let mut expected = vec![0; count];
                    self.std.read_exact(&mut expected).expect("as Volt's");
                    assert_eq!(buffer[..count], expected);
                }
            }
            Step::CancelReadExact(size) => {
                let before = self.std.stream_position().unwrap();
                let mut buffer = vec![0; size];
                drop(futures::poll!(std::pin::pin!(self.volt.read_exact(&mut buffer))));
                let position = self.volt.stream_position().await.unwrap();
                assert!((before..=before + size as u64).contains(&position), "{before} {position}");
                self.std.seek(SeekFrom::Start(position)).unwrap();
            }
            Step::CancelWrite(size) => {
                let bytes = self.bytes(size);
                match futures::poll!(std::pin::pin!(self.volt.write(&bytes))) {
                    std::task::Poll::Ready(result) => self.written(result, &bytes).await,
                    std::task::Poll::Pending => {}
                }
            }
            Step::CancelFlush => drop(futures::poll!(std::pin::pin!(self.volt.flush()))),
            Step::CancelSeek(place) => {
                drop(futures::poll!(std::pin::pin!(self.volt.seek(place))));
                let before = self.std.stream_position().unwrap();
                // The next one tells if it has failed.
                let told = self.volt.stream_position().await;
                assert!(told.is_ok() || self.std.seek(place).is_err(), "{told:?}");
                let position = self.volt.stream_position().await.unwrap();
                if position != before {
                    assert_eq!(self.std.seek(place).unwrap(), position);
                }
            }
            Step::CancelSetLen(length) => {
                drop(futures::poll!(std::pin::pin!(self.volt.set_len(length))));
                self.volt.flush().await.unwrap();
                let now = self.volt.metadata().await.unwrap().len();
                if now != self.std.metadata().unwrap().len() {
                    assert_eq!(now, length);
                    self.std.set_len(length).unwrap();
                }
            }
        }
    }
}

fn play(opened: Opened, length: usize, steps: Vec<Step>) {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["volt", "std"].map(|name| directory.path().join(name));
    let content: Vec<u8> = (0..length).map(|index| 255 - index as u8).collect();
    paths.iter().for_each(|path| std::fs::write(path, &content).unwrap());
    let Opened { read, write, append } = opened;
    let runtime = volt::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut options = File::options();
        let volt = options.read(read).write(write).append(append).open(&paths[0]).await.unwrap();
        let mut options = StdFile::options();
        let std = options.read(read).write(write).append(append).open(&paths[1]).unwrap();
        let mut both = Both { volt, std, next: 0 };
        for step in steps {
            both.step(step).await;
        }
        both.position().await;
        both.volt.flush().await.unwrap();
    });
    let [volt, std] = paths.map(|path| std::fs::read(path).unwrap());
    assert_eq!(volt, std);
}

proptest! {
    #![proptest_config(random::config())]

    #[test]
    fn a_file_does_what_one_of_the_standard_library_does(
        opened in kinds(),
        length in 0..200_usize,
        steps in vec(steps(), 1..24),
    ) {
        play(opened, length, steps);
    }
}
