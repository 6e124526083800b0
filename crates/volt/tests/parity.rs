//! Moving from Tokio is a change of the crate's name: the same source compiles against both, and the
//! same program runs on both.
//!
//! `parity/names.rs` names the items of Tokio's public API, and its methods without type parameters;
//! `parity/program.rs` uses a part of the rest. What is not there on purpose is listed in
//! `docs/design/tokio-api.md`.
#![cfg(target_os = "linux")]

/// The methods exist.
macro_rules! names {
    ($type:ty: $($method:ident),*) => {
        $(let _ = <$type>::$method;)*
    };
}

mod on_tokio {
    #[allow(unused_imports, reason = "it is enough that they are there")]
    pub(crate) mod names {
        use ::tokio as rt;
        include!("parity/names.rs");
    }
    pub(crate) mod program {
        use ::tokio as rt;
        include!("parity/program.rs");
    }
}

mod on_volt {
    #[allow(unused_imports, reason = "it is enough that they are there")]
    pub(crate) mod names {
        use ::volt as rt;
        include!("parity/names.rs");
    }
    pub(crate) mod program {
        use ::volt as rt;
        include!("parity/program.rs");
    }
}

#[test]
fn the_program_runs_on_tokio() {
    on_tokio::names::net();
    on_tokio::names::sync();
    on_tokio::names::others();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(on_tokio::program::run());
}

#[test]
fn the_program_runs_on_volt() {
    on_volt::names::net();
    on_volt::names::sync();
    on_volt::names::others();
    let mut builder = volt::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(on_volt::program::run());
}
