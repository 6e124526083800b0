//! The attribute macros, and the re-exported `select!`, `join!`, `try_join!` and `pin!`.

use std::future::{pending, ready};
use std::time::Duration;

use volt::time::sleep;

#[volt::main]
async fn with_arguments(a: u32, b: &str) -> Result<String, std::num::ParseIntError> {
    let b: u32 = b.parse()?;
    Ok(volt::spawn(async move { a + b }).await.expect("no panic").to_string())
}

#[volt::main(flavor = "current_thread")]
async fn with_impl() -> impl std::fmt::Display {
    3
}

#[test]
fn main_returns_what_the_body_returns() {
    assert_eq!(with_arguments(1, "2"), Ok("3".to_owned()));
    assert!(with_arguments(1, "x").is_err());
    assert_eq!(with_impl().to_string(), "3");
}

#[volt::test]
async fn tests_run_on_the_current_thread() {
    let here = std::thread::current().id();
    let there = volt::spawn(async { std::thread::current().id() }).await.unwrap();
    assert_eq!(here, there);
}

#[volt::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_run_on_workers_on_demand() -> std::io::Result<()> {
    assert_eq!(volt::runtime::Handle::current().metrics().num_workers(), 2);
    Ok(())
}

#[volt::test(start_paused = true)]
async fn time_starts_paused() {
    let real = std::time::SystemTime::now();
    sleep(Duration::from_secs(3600)).await;
    assert!(real.elapsed().unwrap() < Duration::from_secs(60));
}

#[volt::test]
#[should_panic(expected = "with its message")]
async fn panics_pass_through() {
    panic!("with its message");
}

#[volt::test]
async fn select_with_biased_preconditions_and_else() {
    let never = pending::<()>();
    volt::pin!(never);
    for allowed in [true, false] {
        let won = volt::select! {
            biased;
            () = &mut never => "never",
            Some(text) = ready(Some("first")), if allowed => text,
            text = ready("second") => text,
        };
        assert_eq!(won, if allowed { "first" } else { "second" });
    }
    let other = volt::select! {
        Some(()) = ready(None) => "some",
        else => "else",
    };
    assert_eq!(other, "else");
}

#[volt::test(start_paused = true)]
async fn join_and_try_join_wait_for_all() {
    let late = async {
        sleep(Duration::from_millis(5)).await;
        1
    };
    assert_eq!(volt::join!(late, ready(2)), (1, 2));
    let failed = volt::try_join!(async { Err::<u8, _>("no") }, pending::<Result<u8, &str>>());
    assert_eq!(failed, Err("no"));
}
