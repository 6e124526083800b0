//! A cell of each thread, without lazy initialisation where the platform allows it.

/// Declares `static NAME: Cell<T>`, made by a constant expression.
macro_rules! thread_cell {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $init:expr) => {
        #[cfg(not(volt_loom))]
        volt_sync::internal::primitive::thread_local! {
            $(#[$meta])*
            static $name: $type = const { $init };
        }
        #[cfg(volt_loom)]
        volt_sync::internal::primitive::thread_local! {
            $(#[$meta])*
            static $name: $type = $init;
        }
    };
}

pub(crate) use thread_cell;
