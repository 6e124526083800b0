//! What must not compile: work that outlives what it borrows, or goes where its data may not.
//!
//! A task may not borrow from the body of its scope, which ends before it:
//!
//! ```compile_fail,E0597
//! volt_pool::scope(|s| {
//!     let inside = 1;
//!     let borrowed = &inside;
//!     s.spawn(move |_| drop(*borrowed));
//! });
//! ```
//!
//! nor keep the scope itself:
//!
//! ```compile_fail,E0521
//! volt_pool::scope(|s| s.spawn(|_| s.spawn(|_| ())));
//! ```
//!
//! nor let it out:
//!
//! ```compile_fail
//! let scope = volt_pool::in_place_scope(|s| s);
//! ```
//!
//! What the tasks change is theirs until the scope has ended:
//!
//! ```compile_fail,E0502
//! let mut number = 1;
//! volt_pool::scope(|s| {
//!     s.spawn(|_| number += 1);
//!     println!("{number}");
//! });
//! ```
//!
//! Both sides of a fork exclude each other, and may change threads:
//!
//! ```compile_fail,E0499
//! let mut number = 1;
//! volt_pool::join(|| number += 1, || number += 2);
//! ```
//!
//! ```compile_fail,E0277
//! let counted = std::rc::Rc::new(1);
//! volt_pool::join(|| (), move || drop(counted));
//! ```
//!
//! ```compile_fail,E0277
//! let cell = std::cell::Cell::new(1);
//! volt_pool::scope(|s| s.spawn(|_| cell.set(2)));
//! ```
//!
//! Detached work borrows nothing, nor does work that is awaited, whose future may be forgotten:
//!
//! ```compile_fail,E0373
//! let number = 1;
//! volt_pool::spawn(|| drop(number + 1));
//! ```
//!
//! ```compile_fail,E0597
//! let pool = volt_pool::ThreadPool::new();
//! let number = 1;
//! let borrowed = &number;
//! let future = pool.run(move || *borrowed);
//! ```
