//! Moving from Tokio is a change of the crate's name: the same source compiles against both, and the
//! same program runs on both.
//!
//! `parity/names.rs` names the items of Tokio's public API. `net.rs`, `sync.rs` and `others.rs` there
//! call each function and method with arguments of the types that Tokio asks for, take the result as
//! what Tokio returns, lifetimes included, give as many type parameters as Tokio has, and demand the
//! traits that Tokio's types implement. That is compiled, and not run; `parity/program.rs` is a program
//! that runs. What is not there on purpose is listed in `docs/design/tokio-api.md`.
#![cfg(target_os = "linux")]

/// An argument or result of a call that is only compiled.
fn any<T>() -> T {
    unreachable!("compiled, and not run")
}

type Cx<'c> = &'c mut std::task::Context<'c>;

/// Methods of a type: their parameters in angle brackets, the types of their arguments and result.
macro_rules! calls {
    ($type:ty:) => {};
    ($type:ty: fn $method:ident $(::<$($parameter:ty),*>)? ($($argument:ty),*) $(-> $result:ty)?; $($rest:tt)*) => {
        let _ = result!(<$type>::$method $(::<$($parameter),*>)? ($(any::<$argument>()),*) $(, $result)?);
        calls!($type: $($rest)*);
    };
    ($type:ty: async fn $method:ident $(::<$($parameter:ty),*>)? ($($argument:ty),*) $(-> $result:ty)?; $($rest:tt)*) => {
        let _ = result!(<$type>::$method $(::<$($parameter),*>)? ($(any::<$argument>()),*).await $(, $result)?);
        calls!($type: $($rest)*);
    };
    ($type:ty: unsafe fn $method:ident $(::<$($parameter:ty),*>)? ($($argument:ty),*) $(-> $result:ty)?; $($rest:tt)*) => {
        // SAFETY: this is not run.
        let _ = result!(unsafe { <$type>::$method $(::<$($parameter),*>)? ($(any::<$argument>()),*) } $(, $result)?);
        calls!($type: $($rest)*);
    };
}

/// Functions, by their paths and parameters in brackets.
macro_rules! functions {
    () => {};
    (fn [$function:expr] ($($argument:ty),*) $(-> $result:ty)?; $($rest:tt)*) => {
        let _ = result!($function($(any::<$argument>()),*) $(, $result)?);
        functions!($($rest)*);
    };
    (async fn [$function:expr] ($($argument:ty),*) $(-> $result:ty)?; $($rest:tt)*) => {
        let _ = result!($function($(any::<$argument>()),*).await $(, $result)?);
        functions!($($rest)*);
    };
}

/// The result of `$call`, which is of the type `$type`.
macro_rules! result {
    ($call:expr) => {
        result!($call, ())
    };
    ($call:expr, $type:ty) => {{
        let result: $type = $call;
        result
    }};
}

/// Types and the traits that they implement.
macro_rules! implements {
    ($($type:ty: $($bound:path),*;)*) => {
        $({
            fn check<T: $($bound +)*>() {}
            check::<$type>();
        })*
    };
}

/// The files of `parity`, with `rt` for `$runtime`.
macro_rules! compile {
    ($module:ident, $runtime:ident) => {
        #[allow(
            dead_code,
            deprecated,
            unused_imports,
            clippy::all,
            reason = "compiled, and not run"
        )]
        mod $module {
            mod names {
                use ::$runtime as rt;
                include!("parity/names.rs");
            }
            mod net {
                use ::$runtime as rt;
                include!("parity/net.rs");
            }
            mod sync {
                use ::$runtime as rt;
                include!("parity/sync.rs");
            }
            mod others {
                use ::$runtime as rt;
                include!("parity/others.rs");
            }
            pub(crate) mod program {
                use ::$runtime as rt;
                include!("parity/program.rs");
            }
        }
    };
}

compile!(on_tokio, tokio);
compile!(on_volt, volt);

#[test]
fn the_program_runs_on_tokio() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(on_tokio::program::run());
}

#[test]
fn the_program_runs_on_volt() {
    let mut builder = volt::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(on_volt::program::run());
}
