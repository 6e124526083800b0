//! `#[volt::main]` and `#[volt::test]`: an `async fn` becomes a plain one that builds a runtime and
//! blocks on the body.
//!
//! Programs use them through `volt-rt`, which re-exports them, and so do the examples here.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod entry;
mod options;

use entry::Kind;

/// The crate in whose name the attributes expand, unless `crate` says otherwise.
const VOLT: &str = "volt";
const TOKIO: &str = "tokio";

/// Turns an `async fn` into one that runs on a runtime of its own.
///
/// Options, in parentheses and separated by commas:
///
/// | Option             | Values                               | Default          |
/// |--------------------|--------------------------------------|------------------|
/// | `flavor`           | `"multi_thread"`, `"current_thread"`, or `"local"`: a [`LocalRuntime`] | `"multi_thread"` |
/// | `worker_threads`   | a positive number, multi-thread only | one per processor |
/// | `start_paused`     | `true`: time starts [paused], not multi-thread | `false` |
/// | `name`             | a text: the runtime's [name]         | none             |
/// | `crate`            | the path of the crate, where it has another name (`rt = { package = "volt-rt", .. }`: `"rt"`) | `"volt"` |
///
/// [`LocalRuntime`]: https://docs.rs/volt-rt/latest/volt/runtime/struct.LocalRuntime.html
/// [name]: https://docs.rs/volt-rt/latest/volt/runtime/struct.Builder.html#method.name
/// [paused]: https://docs.rs/volt-rt/latest/volt/time/fn.pause.html
///
/// ```
/// #[volt::main(flavor = "multi_thread", worker_threads = 2)]
/// async fn main() -> std::io::Result<()> {
///     let answer = volt::spawn(async { 6 * 7 }).await?;
///     assert_eq!(answer, 42);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn main(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(options.into(), item.into(), Kind::Main, VOLT).into()
}

/// Turns an `async fn` into a test that runs on a runtime of its own.
///
/// Takes the options of [`main`](macro@main); the flavor is `"current_thread"` by default. There is no `#[test]` beside
/// it.
///
/// ```test_harness
/// #[volt::test(start_paused = true)]
/// async fn an_hour_passes_at_once() {
///     let start = volt::time::Instant::now();
///     volt::time::sleep(std::time::Duration::from_secs(3600)).await;
///     assert_eq!(start.elapsed().as_secs(), 3600);
/// }
///
/// #[volt::test(flavor = "multi_thread", worker_threads = 2)]
/// async fn the_answer_is_right() -> std::io::Result<()> {
///     let answer = volt::spawn(async { 6 * 7 }).await?;
///     assert_eq!(answer, 42);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(options.into(), item.into(), Kind::Test, VOLT).into()
}

/// [`main`](macro@main) in Tokio's name: of the package that takes Tokio's place.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn tokio_main(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(options.into(), item.into(), Kind::Main, TOKIO).into()
}

/// [`test`](macro@test) in Tokio's name: of the package that takes Tokio's place.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn tokio_test(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(options.into(), item.into(), Kind::Test, TOKIO).into()
}
