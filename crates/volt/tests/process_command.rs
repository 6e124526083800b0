//! What a child is given: environment, folder, name, group, user. On both flavours, in `block_on` and
//! on workers; and many children at once.
#![cfg(unix)]

#[path = "support/net.rs"]
mod support;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use volt::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use volt::process::Command;
use volt::time::{sleep, timeout};

use support::{each, stress};

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// What it prints, which is text.
async fn printed(command: &mut Command) -> String {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The environment of the child, as `env` sees it.
async fn environment(command: &mut Command) -> BTreeMap<String, String> {
    let text = printed(command).await;
    let pairs = text.split_terminator('\0').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_environment_is_what_was_said() {
    each(|| async {
        let mut expected: BTreeMap<String, String> = std::env::vars().collect();
        let mut set = |pairs: &[(&str, &str)]| {
            expected.extend(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())));
            expected.clone()
        };
        let mut command = Command::new("/usr/bin/env");
        command.arg("-0").envs([("VOLT_A", "1"), ("VOLT_B", "2")]).env("VOLT_C", "a=b\nc");
        let all = set(&[("VOLT_A", "1"), ("VOLT_B", "2"), ("VOLT_C", "a=b\nc")]);
        assert_eq!(environment(&mut command).await, all);
        command.env_remove("VOLT_B").envs([("VOLT_A", "3")]);
        let mut all = set(&[("VOLT_A", "3")]);
        all.remove("VOLT_B");
        assert_eq!(environment(&mut command).await, all);
        // One that is inherited can be kept back as well.
        let inherited = std::env::vars().next();
        if let Some((name, _)) = inherited {
            command.env_remove(&name);
            all.remove(&name);
            assert_eq!(environment(&mut command).await, all);
        }
        command.env_clear();
        assert_eq!(environment(&mut command).await, BTreeMap::new());
        command.env("VOLT_D", "4");
        assert_eq!(environment(&mut command).await, [("VOLT_D".into(), "4".into())].into());
    });
}

#[test]
fn the_folder_and_the_name_are_what_was_said() {
    each(|| async {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let mut command = shell("pwd -P");
        command.current_dir(folder.path());
        assert_eq!(printed(&mut command).await, format!("{}\n", real.display()));
        let missing = folder.path().join("missing");
        assert!(command.current_dir(missing).spawn().is_err());
        let mut command = shell("echo $0");
        assert_eq!(printed(command.arg0("another name")).await, "another name\n");
    });
}

#[test]
fn a_group_of_its_own_is_signalled_alone() {
    each(|| async {
        let mut child = Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
        let id = libc::pid_t::try_from(child.id().unwrap()).unwrap();
        // SAFETY: it touches no memory.
        assert_eq!(unsafe { libc::getpgid(id) }, id);
        // SAFETY: it touches no memory; the group's only member is a child that nobody has waited for.
        assert_eq!(unsafe { libc::killpg(id, libc::SIGTERM) }, 0);
        assert_eq!(child.wait().await.unwrap().signal(), Some(libc::SIGTERM));
        // A second one joins the first one's.
        let mut first = Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
        let id = libc::pid_t::try_from(first.id().unwrap()).unwrap();
        let mut second = Command::new("sleep").arg("100").process_group(id).spawn().unwrap();
        // SAFETY: it touches no memory; nobody has waited for the children of this group.
        assert_eq!(unsafe { libc::killpg(id, libc::SIGKILL) }, 0);
        assert_eq!(first.wait().await.unwrap().signal(), Some(libc::SIGKILL));
        assert_eq!(second.wait().await.unwrap().signal(), Some(libc::SIGKILL));
    });
}

#[test]
fn a_closure_runs_in_the_child_and_its_error_is_the_starts() {
    each(|| async {
        let mut command = shell("umask");
        let mask = || {
            // SAFETY: it touches no memory, and changes the child only.
            unsafe { libc::umask(0o123) };
            Ok(())
        };
        // SAFETY: `umask` is async-signal-safe.
        unsafe { command.pre_exec(mask) };
        assert_eq!(printed(&mut command).await.trim().trim_start_matches('0'), "123");
        // SAFETY: the closure makes a number and nothing else.
        unsafe { command.pre_exec(|| Err(std::io::Error::from_raw_os_error(libc::EDOM))) };
        assert_eq!(command.spawn().unwrap_err().raw_os_error(), Some(libc::EDOM));
    });
}

/// True if this process may run others under any user: it is root, and not that of a container that knows few.
fn may_choose(own_user: u32) -> bool {
    let knows_all = |map: &str| {
        let map = std::fs::read_to_string(map).unwrap_or_default();
        map.split_whitespace().eq(["0", "0", "4294967295"])
    };
    own_user == 0 && ["/proc/self/uid_map", "/proc/self/gid_map"].into_iter().all(knows_all)
}

/// Only root may choose; everybody may choose himself.
#[test]
fn the_user_and_the_group_are_what_was_said() {
    // SAFETY: it touches no memory.
    let own_user = unsafe { libc::getuid() };
    // SAFETY: it touches no memory.
    let own_group = unsafe { libc::getgid() };
    each(move || async move {
        let (user, group) =
            if may_choose(own_user) { (65_534, 65_533) } else { (own_user, own_group) };
        let mut command = shell("id -u; id -g");
        assert_eq!(printed(command.uid(user).gid(group)).await, format!("{user}\n{group}\n"));
        let mut command = shell("id -u; id -g");
        assert_eq!(printed(command.gid(group)).await, format!("{own_user}\n{group}\n"));
        if own_user != 0 {
            let error = shell("id -u").uid(0).spawn().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        }
    });
}

/// Children end, are killed, talk, are dropped, and are waited for in vain, all at once; in the end
/// none is left.
#[test]
fn stress_of_many_children() {
    let rounds = stress(2);
    each(move || async move {
        let mut tasks = volt::task::JoinSet::new();
        for number in 0..8 {
            tasks.spawn(many_children(number, rounds));
        }
        let mut ids = Vec::new();
        while let Some(task) = tasks.join_next().await {
            ids.extend(task.unwrap());
        }
        for id in ids {
            while is_our_child(id) {
                sleep(Duration::from_millis(1)).await;
            }
        }
    });
}

/// True while the process is there, zombies included, and is not another's with the same number.
fn is_our_child(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.is_some_and(|parent| parent.trim() == std::process::id().to_string())
}

/// Returns the numbers of those that were dropped while they ran.
async fn many_children(number: usize, rounds: usize) -> Vec<u32> {
    let mut dropped = Vec::new();
    for round in 0..rounds {
        match (number + round) % 4 {
            0 => {
                let mut child = shell(&format!("exit {number}")).spawn().unwrap();
                assert_eq!(child.wait().await.unwrap().code(), i32::try_from(number).ok());
            }
            1 => {
                let mut child = Command::new("sleep").arg("100").spawn().unwrap();
                assert!(timeout(Duration::from_millis(1), child.wait()).await.is_err());
                child.kill().await.unwrap();
                assert_eq!(child.wait().await.unwrap().signal(), Some(libc::SIGKILL));
            }
            2 => {
                let mut cat = Command::new("cat");
                let mut child = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
                let mut stdin = child.stdin.take().unwrap();
                let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
                for line in 0..20 {
                    stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
                    assert_eq!(lines.next_line().await.unwrap(), Some(line.to_string()));
                }
                drop(stdin);
                assert_eq!(lines.next_line().await.unwrap(), None);
                assert!(child.wait().await.unwrap().success());
            }
            _ => {
                let mut sleeper = Command::new("sleep");
                dropped.extend(sleeper.arg("100").kill_on_drop(true).spawn().unwrap().id());
                // This one ends by itself, as its input does.
                let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
                dropped.extend(child.id());
                let stdin = child.stdin.take();
                drop(child);
                drop(stdin);
            }
        }
    }
    dropped
}
